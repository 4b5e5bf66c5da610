"""The sandbox's Discord after a kill, and the situations in which it refuses to run."""

from errno import ENOSPC
from pathlib import Path

import httpx
import pytest

from sandbox.__main__ import environment as environment_with
from sandbox.__main__ import port_of, refusal_to_run
from sandbox.discord.world import world
from sandbox.discord.world.entities import Grant, User
from sandbox.discord.world.world import World
from tests.sandbox.chains.nodes import Process
from tests.sandbox.conftest import BASE, CALLBACK, CLUB, HOLDER, role_of

CAROL = "1150000000000000303"


def test_members_roles_grants_and_messages_survive_a_kill(sandbox_process: Process):
    process = sandbox_process
    api = f"{process.url}/discord/api/v10"
    with httpx.Client(headers=process.bot, trust_env=False) as bot:
        bot.post(f"{process.url}/control/guilds", json={"guild": CLUB, "action": "add_bot"})
        bot.put(f"{api}/guilds/{BASE}/members/{CAROL}/roles/{role_of(BASE, HOLDER)}")
        channel = bot.post(f"{api}/guilds/{BASE}/channels", json={"name": "verify"}).json()["id"]
        bot.post(f"{api}/channels/{channel}/messages", json={"content": "Still here"})
        query = {"client_id": "1160000000000000001", "scope": "identify", "response_type": "code", "as": "carol"}
        redirect = bot.get(f"{process.url}/discord/oauth2/authorize", params={**query, "redirect_uri": CALLBACK})
        form = {"grant_type": "authorization_code", "redirect_uri": CALLBACK, "client_id": "1160000000000000001"}
        form |= {"client_secret": "sandbox-client-secret", "code": redirect.next_request.url.params["code"]}  # type: ignore[union-attr]
        token = bot.post(f"{api}/oauth2/token", data=form).json()["access_token"]
        before = bot.get(f"{process.url}/control/world").json()
        process.kill()
        with (process.data / "discord.jsonl").open("ab") as journal:
            journal.write(b'{"kind":"member","val')
        process.start()
        assert bot.get(f"{process.url}/control/world").json() == before
        me = bot.get(f"{api}/users/@me", headers={"Authorization": f"Bearer {token}"})
        assert me.json()["username"] == "carol"
        assert bot.post(f"{process.url}/control/reset").status_code == 200
        after = bot.get(f"{process.url}/control/world").json()
        assert [guild["bot_added"] for guild in after["guilds"]] == [False, True, False]
        assert not any(channel["messages"] for guild in after["guilds"] for channel in guild["channels"])


def test_the_applications_settings_survive_a_kill_and_not_a_reset(sandbox_process: Process):
    process, place = sandbox_process, "https://bot.example/callback"
    api = f"{process.url}/discord/api/v10"
    with httpx.Client(headers=process.bot, trust_env=False) as bot:
        redirects = bot.get(f"{process.url}/control/limits").json()["discord"]["redirect_uris"]
        wanted = {"members_intent": "off", "shards": 3, "redirect_uris": [place]}
        assert bot.post(f"{process.url}/control/application", json=wanted).status_code == 200
        for change in ({"shards": 4, "members_intent": "perhaps"}, {"shards": 4, "redirect_uris": [1]}):
            assert bot.post(f"{process.url}/control/application", json=change).status_code == 400
        process.kill()
        process.start()
        assert bot.get(f"{api}/guilds/{BASE}/members").status_code == 403
        assert bot.get(f"{api}/gateway/bot").json()["shards"] == 3, "a refused call has changed nothing"
        assert bot.get(f"{process.url}/control/limits").json()["discord"]["redirect_uris"] == [place]
        assert bot.post(f"{process.url}/control/reset").status_code == 200
        process.kill()
        process.start()
        assert bot.get(f"{api}/guilds/{BASE}/members").status_code == 200
        assert bot.get(f"{api}/gateway/bot").json()["shards"] == 1
        assert bot.get(f"{process.url}/control/limits").json()["discord"]["redirect_uris"] == redirects


def test_a_foreign_host_name_is_refused(sandbox_process: Process):
    answer = httpx.get(f"{sandbox_process.url}/control/world", headers={"Host": "evil.example"}, trust_env=False)
    assert answer.status_code == 421


@pytest.mark.parametrize(
    ("environment", "runs"),
    [
        ({}, True),
        ({"DISCORD_BOT_TOKEN": "sandbox-bot-token"}, True),
        ({"DISCORD_BOT_TOKEN": "a live one"}, False),
        ({"DISCORD_BOT_TOKEN": "a live one", "SANDBOX": "1"}, True),
        ({"PUBLIC_URL": "http://localhost:3000"}, True),
        ({"PUBLIC_URL": "https://holdfast.example"}, False),
        ({"PUBLIC_URL": "https://holdfast.example", "SANDBOX": "1"}, False),
        ({"PUBLIC_URL": "holdfast.example"}, False),
        ({"PUBLIC_URL": "http://[holdfast.example"}, False),
    ],
)
def test_it_does_not_run_beside_live_credentials_or_in_public(environment: dict[str, str], runs: bool):
    assert (refusal_to_run(environment, 3210) is None) is runs


def test_live_credentials_in_the_file_count_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / ".env"
    for name in ("DISCORD_BOT_TOKEN", "DISCORD_CLIENT_ID", "DISCORD_CLIENT_SECRET", "PUBLIC_URL", "SANDBOX"):
        monkeypatch.delenv(name, raising=False)
    assert refusal_to_run(environment_with(file), 3210) is None
    file.write_text("# DISCORD_CLIENT_ID=1\nexport DISCORD_BOT_TOKEN = 'real'\n")
    assert "DISCORD_BOT_TOKEN" in (refusal_to_run(environment_with(file), 3210) or "")
    file.write_text("DISCORD_BOT_TOKEN=\nPUBLIC_URL=http://localhost:3000\n")
    assert refusal_to_run(environment_with(file), 3210) is None
    monkeypatch.setenv("DISCORD_BOT_TOKEN", "real")
    assert refusal_to_run(environment_with(file), 3210) is not None


@pytest.mark.parametrize(("given", "port"), [("", 3210), ("4000", 4000), ("70000", 0), ("0", 0), ("-1", 0), ("web", 0)])
def test_what_is_no_port_is_seen_before_anything_starts(given: str, port: int) -> None:
    assert port_of({"SANDBOX_PORT": given}) == port


def test_a_journal_does_not_grow_with_what_is_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(world, "SPARE", 10)
    journal = tmp_path / "discord.jsonl"
    first, again = World(), World()
    first.open(journal)
    for number in range(100):
        first.save(User("1", f"name{number}", None, None))
        grant = Grant(f"token{number}", "refresh", "1", [], 0.0)
        first.save(grant)
        first.remove(grant)
    assert len(journal.read_text().splitlines()) < 20
    again.open(journal)
    assert (again.users, again.grants) == (first.users, {})
    again.close()
    first.close()


def test_a_journal_grows_on_where_the_disk_has_no_room_for_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def full(_: Path, __: int) -> None:
        raise OSError(ENOSPC, "No space left on device")

    monkeypatch.setattr(world, "SPARE", 10)
    first, again = World(), World()
    first.open(tmp_path / "discord.jsonl")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "chmod", full)
        for number in range(100):
            first.save(User("1", f"name{number}", None, None))
    assert [one.name for one in tmp_path.iterdir()] == ["discord.jsonl"], "half a file would take the room that is left"
    again.open(tmp_path / "discord.jsonl")
    assert again.users["1"].username == "name99"
    again.close()
    for number in range(200):
        first.save(User("1", f"name{number}", None, None))
    assert len((tmp_path / "discord.jsonl").read_text().splitlines()) < 20
    first.close()
