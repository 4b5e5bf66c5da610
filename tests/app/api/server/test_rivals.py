"""Rivals and truces through the dashboard's calls: who the rival is, why nothing changes, and how to continue."""

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlmodel import select

from gateways.discord.audit_log import RoleEntry
from models import Event, Grant, RivalMove, ServerMove, Truce, now, transaction
from services.guilds import members, rivals
from services.guilds.rivals import Reversal
from services.health import alerts
from services.roles import rival_names
from services.roles.rival_names import OpenMove, RoleLog, Search
from tests.app.api.browsers import Browser
from tests.app.api.requests.test_tokens import made, program
from tests.jobs.town import Town, a_town
from tests.support.builders import snowflake


@pytest.fixture
async def town(discord: None, sandbox_url: str) -> AsyncIterator[Town]:
    """A guild that only this test uses, whose owner is ada's twin, with a rule for Holder."""
    async with a_town(sandbox_url, "ada", "carol", "dave") as made:
        await made.rule("Holder")
        yield made


@pytest.fixture
async def owner(browser: Browser, town: Town) -> Browser:
    await browser.sign_in(town.people["ada"]["username"])
    return browser


async def lost(town: Town, who: str, times: int = 1) -> None:
    """Store that others took Holder from a member that often, each time after we had given it."""
    role_id, discord_id = await town.role("Holder"), town.people[who]["id"]
    async with transaction() as db:
        db.add(Grant(server_id=town.server_id, discord_id=discord_id, role_id=role_id, state="lost"))
        for _ in range(times):
            await rivals.record(db, [Reversal(town.server_id, discord_id, role_id, taken=True)], against=True)


async def named(name: str, *, bot: bool, denied: bool = False) -> None:
    """Let Discord's audit log of the server name the rival, or be unreadable."""
    async with transaction() as db:
        search = await rival_names.claim(db)
        assert search is not None
        said = RoleLog(denied=True) if denied else RoleLog(tuple(_entries(search, name, bot=bot)))
        await rival_names.keep(db, search, said)


def _entries(search: Search, name: str, *, bot: bool) -> list[RoleEntry]:
    return [
        RoleEntry(snowflake(), move.at, "4242", name, bot, move.discord_id, frozenset(), frozenset({move.role_id}))
        for move in search.moves
    ]


async def health(browser: Browser, town: Town) -> dict[str, Any]:
    answer = await browser.client.get(f"/api/servers/{town.server_id}/health")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def role_of(browser: Browser, town: Town, who: str) -> dict[str, Any]:
    answer = await browser.client.get(f"/api/servers/{town.server_id}/members/{town.people[who]['id']}/why")
    assert answer.status_code == 200, answer.text
    (role,) = answer.json()["roles"]
    return role


async def told(town: Town) -> dict[str, str]:
    """Return the texts of the alerts that begin now, by title."""
    async with transaction() as db:
        server = await db.get_one(alerts.Server, town.server_id)
        server.log_channel_id = snowflake()
        db.add(server)
        await db.flush()
        await alerts.record_begun_and_ended(db)
        return {one.title: f"{one.text} {one.mend}" for one in await alerts.claim(db)}


async def test_a_bot_that_takes_a_role_is_named_on_health_in_an_alert_and_to_the_member(
    owner: Browser, town: Town
) -> None:
    await town.prove("carol")
    await lost(town, "carol")
    assert [title for title in await told(town) if "Holder" in title] == [], "the alert waits for the name"
    await named("Collab.Land", bot=True)
    (line,) = (await health(owner, town))["rivals"]
    assert (line["name"], line["bot"], line["took"], line["gave"], line["state"]) == (
        "Collab.Land", True, 1, 0, "warning",
    )  # fmt: skip
    assert line["text"].startswith("Collab.Land took Holder once within 24 hours. Last: ")
    assert "end the rule for it in Collab.Land, or here" in line["mend"]
    assert len(line["times"]) == 1
    alert = (await told(town))["Two bots fight over Holder"]
    assert "Collab.Land took Holder once" in alert
    role = await role_of(owner, town, "carol")
    assert role["next"].startswith("Collab.Land took it on ")
    assert role["leftAloneUntil"] is None
    assert (await role_of(owner, town, "dave"))["next"] == "Not given, because no rule says yes."


async def test_without_the_permission_health_says_which_one_would_tell_the_name(owner: Browser, town: Town) -> None:
    await lost(town, "carol")
    await named("", bot=False, denied=True)
    (line,) = (await health(owner, town))["rivals"]
    assert (line["name"], line["actorId"]) == (None, None)
    assert "Who it was is unknown: the bot lacks the permission View Audit Log" in line["text"]
    assert line["mend"] == "Switch on View Audit Log for the bot's role in Server Settings › Roles."
    assert "lacks the permission View Audit Log" in (await told(town))["Somebody else moves Holder"]


async def test_a_truce_is_shown_where_it_matters_and_an_admin_ends_it(owner: Browser, town: Town) -> None:
    await lost(town, "carol", times=2)
    await lost(town, "dave", times=2)
    await named("Collab.Land", bot=True)
    view = await health(owner, town)
    (truce,) = view["truces"]
    assert (truce["total"], truce["state"], {one["discordId"] for one in truce["members"]}) == (
        2, "warning", {town.people["carol"]["id"], town.people["dave"]["id"]},
    )  # fmt: skip
    assert view["rivals"][0]["took"] == 4
    assert "neither gives nor takes the role there until " in truce["text"]
    assert any(title.endswith("leaves Holder of 2 members alone") for title in await told(town))
    role = await role_of(owner, town, "carol")
    assert role["next"].startswith("Others reversed it twice within an hour")
    assert role["leftAloneUntil"] in {one["until"] for one in truce["members"]}

    call = f"/api/servers/{town.server_id}/health/follow-again"
    one = await owner.client.post(call, json={"roleId": truce["roleId"], "discordId": town.people["dave"]["id"]})
    assert (one.status_code, one.json()) == (200, {"members": 1})
    rest = await owner.client.post(call, json={"roleId": truce["roleId"]})
    assert rest.json() == {"members": 1}
    assert (await owner.client.post(call, json={"roleId": truce["roleId"]})).json() == {"members": 0}
    assert (await health(owner, town))["truces"] == []
    async with transaction() as db:
        assert (await db.exec(select(Grant))).all() == [], "what was lost is decided as if it were new"
        moves = (await db.exec(select(RivalMove.against))).all()
        lines = (await db.exec(select(Event).where(Event.kind == "role.followed_again"))).all()
    assert not any(moves), "the next truce takes two further reversals"
    assert {line.actor for line in lines} == {town.people["ada"]["id"]}
    log = (await owner.client.get(f"/api/servers/{town.server_id}/events.csv")).text
    assert "is neither given nor taken until" in log
    assert "let the rules decide about Holder" in log


async def test_who_does_not_run_the_server_ends_no_truce(new_browser: Callable[[], Browser], town: Town) -> None:
    stranger = new_browser()
    await stranger.sign_in(town.people["dave"]["username"])
    await lost(town, "carol", times=2)
    answer = await stranger.client.post(
        f"/api/servers/{town.server_id}/health/follow-again", json={"roleId": await town.role("Holder")}
    )
    assert answer.status_code == 404
    async with transaction() as db:
        (truce,) = (await db.exec(select(Truce))).all()
    assert truce.until > now()


async def test_a_member_who_leaves_or_is_forgotten_takes_their_truce_along(town: Town) -> None:
    await lost(town, "carol", times=2)
    async with transaction() as db:
        await members.left_many(db, [(town.server_id, town.people["carol"]["id"])])
    async with transaction() as db:
        assert (await db.exec(select(Truce))).all() == []


async def test_a_token_that_may_only_read_learns_no_persons_name(
    new_browser: Callable[[], Browser], browser: Browser, town: Town
) -> None:
    await browser.sign_in(town.people["ada"]["username"])
    role_id = await town.role("Holder")
    async with transaction() as db:
        db.add(ServerMove(server_id=town.server_id, roles=[role_id], until=now() + timedelta(days=3)))
    await lost(town, "carol", times=2)
    await named("Dave the moderator", bot=False)
    caller = program(new_browser, (await made(browser, town, scopes=["read"]))["token"])
    at = f"/api/servers/{town.server_id}"
    assert (await caller.client.get(f"{at}/members")).status_code == 403
    said = {path: (await caller.client.get(f"{at}/{path}")).text for path in ("health", "move")}
    assert {path: "Dave the moderator" in text or "4242" in text for path, text in said.items()} == {
        "health": False, "move": False,
    }  # fmt: skip


def test_a_move_that_is_noticed_late_is_not_named_after_a_later_one() -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)

    def entry(number: int, seconds: float) -> RoleEntry:
        at = noon + timedelta(seconds=seconds)
        return RoleEntry(str(number), at, "9", "rival", True, "1", frozenset[str](), frozenset({"2"}))

    def noticed(number: int, seconds: float) -> OpenMove:
        return OpenMove(number, "1", "2", True, noon + timedelta(seconds=seconds), noon)

    late = [noticed(1, 13), noticed(2, 20)]
    entries = [entry(19, 19), entry(14, 14), entry(10, 10)]
    assert {number: one.id for number, one in rival_names.match(late, entries).items()} == {1: "10", 2: "19"}
    ahead = rival_names.match([noticed(1, 13)], [entry(15, 15), entry(14, 14)])
    assert ahead[1].id == "14", "the clock of the log may be ahead"
