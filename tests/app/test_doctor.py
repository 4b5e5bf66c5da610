"""What the doctor finds missing for a live start, and that it says how to get each thing."""

import asyncio
import base64
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from app.doctor import ADVICE, LACKING, RIGHT, connections, data_directory, database, env_file, examine, main
from app.supervisor import processes
from gateways.chains.catalogue import CHAINS
from gateways.discord.application import SessionStarts
from models import transaction, use
from services.guilds.gateway import identifies
from setting_checks import libpq_url
from tests.support.databases import by

ROOT = Path(__file__).resolve().parents[2]
BOT = "123456789012345678"
WHOLE = {
    "DISCORD_CLIENT_ID": BOT,
    "DISCORD_CLIENT_SECRET": "abcdefghijklmnopqrstuvwxyz012345",
    "DISCORD_BOT_TOKEN": f"{base64.b64encode(BOT.encode()).decode().rstrip('=')}.Gabcde.{'x' * 38}",
    "PUBLIC_URL": "https://roles.example.com",
    "SECRET_KEY": "Zk3v9QpR7sT1uW5xY8aB2cD4eF6gH0jL",
    "OPENSEA_API_KEY": "key",
    "RPC_BASE": "https://one.example https://two.example",
}


def levels(values: dict[str, str]) -> dict[str, str]:
    return {one.name: one.level for one in examine(values)}


def test_a_whole_configuration_lacks_nothing() -> None:
    found = examine(WHOLE)
    assert [one for one in found if one.level == LACKING] == []
    assert levels(WHOLE)["Chain base"] == RIGHT
    assert levels(WHOLE)["Chain polygon"] == ADVICE
    assert levels(WHOLE)["Proxy"] == ADVICE
    assert (levels(WHOLE)["Contact address"], levels(WHOLE)["Staging address"]) == (ADVICE, ADVICE)
    named = {**WHOLE, "CONTACT_ADDRESS": "help@example.com", "OPERATOR_PAGES": "0"}
    assert not {"Contact address", "Staging address"} & set(levels(named))
    assert levels({**WHOLE, "TRUSTED_PROXIES": "127.0.0.1"})["Proxy"] == RIGHT
    (redirect,) = [one for one in found if one.name == "Redirect URI"]
    assert "https://roles.example.com/api/auth/discord/callback" in redirect.how


@pytest.mark.parametrize("typed", ["https://roles.example.com:443", "https://Roles.example.com/"])
def test_the_redirect_is_the_one_that_sign_ins_send_however_the_address_is_typed(typed: str) -> None:
    (redirect,) = [one for one in examine({**WHOLE, "PUBLIC_URL": typed}) if one.name == "Redirect URI"]
    assert redirect.how.endswith(" https://roles.example.com/api/auth/discord/callback")


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"DISCORD_CLIENT_ID": ""}, "Discord application"),
        ({"DISCORD_CLIENT_ID": "my-bot"}, "Discord application"),
        ({"DISCORD_CLIENT_SECRET": ""}, "Client secret"),
        ({"DISCORD_BOT_TOKEN": ""}, "Bot token"),
        ({"DISCORD_BOT_TOKEN": "abc"}, "Bot token"),
        ({"DISCORD_BOT_TOKEN": "é.b.c"}, "Bot token"),
        ({"PUBLIC_URL": ""}, "Public address"),
        ({"PUBLIC_URL": "http://roles.example.com"}, "Public address"),
        ({"PUBLIC_URL": "https://localhost"}, "Public address"),
        ({"PUBLIC_URL": "https://[roles.example.com"}, "Public address"),
        ({"RPC_BASE": "https://[one.example https://two.example"}, "Chain base"),
        ({"RPC_SOLANA": "https://[one.example"}, "Chain solana"),
        ({"SECRET_KEY": ""}, "Secret key"),
        ({"SECRET_KEY": "changeme"}, "Secret key"),
        ({"SECRET_KEY": "a" * 64}, "Secret key"),
        ({"SECRET_KEY": WHOLE["DISCORD_CLIENT_SECRET"]}, "Secret key"),
        ({"OPENSEA_API_KEY": ""}, "OpenSea key"),
        ({"RPC_BASE": ""}, "Nodes"),
        ({"RPC_BASE": "one.example"}, "Chain base"),
        ({"RPC_BASE": "https://one.example,https://two.example"}, "Chain base"),
        ({"SANDBOX_URL": "http://localhost:3210"}, "Sandbox"),
    ],
)
def test_what_is_lacking_is_said_with_how_to_get_it(change: dict[str, str], name: str) -> None:
    (found,) = [one for one in examine({**WHOLE, **change}) if one.name == name]
    assert found.level == LACKING
    assert found.how


def test_no_secret_is_repeated() -> None:
    told = " ".join(f"{one.text} {one.how}" for one in examine(WHOLE))
    for secret in ("DISCORD_CLIENT_SECRET", "DISCORD_BOT_TOKEN", "SECRET_KEY", "OPENSEA_API_KEY"):
        assert WHOLE[secret] not in told.replace(secret, "").split()
    assert "one.example" not in told


def test_without_an_application_the_end_says_that_a_start_uses_the_sandbox(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in WHOLE:
        monkeypatch.delenv(name, raising=False)
    assert main() == 1
    said = capsys.readouterr().out
    assert said.splitlines()[-1].endswith("lacking for a live start. Until then a start uses the sandbox.")


@pytest.mark.parametrize(
    ("values", "code", "ends"),
    [
        ({}, 0, "Nothing is lacking; `make live-check` asks the providers themselves."),
        ({"BOT_SHARDS": "many"}, 1, "1 thing is lacking for a live start, and nothing starts until then."),
    ],
)
def test_the_end_and_the_exit_code_say_whether_something_is_lacking(
    values: dict[str, str], code: int, ends: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {**WHOLE, **values}.items():
        monkeypatch.setenv(name, value)
    assert main() == code
    assert capsys.readouterr().out.splitlines()[-1] == ends


@pytest.mark.parametrize(
    ("lacks", "ends"),
    [
        ("DISCORD_BOT_TOKEN", ", and nothing starts until then."),
        ("OPENSEA_API_KEY", ". Until then a start is live, and works without it as far as it can."),
    ],
)
def test_the_end_says_what_a_start_does_without_what_is_lacking(
    lacks: str, ends: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {**WHOLE, lacks: ""}.items():
        monkeypatch.setenv(name, value)
    assert main() == 1
    assert capsys.readouterr().out.splitlines()[-1] == f"1 thing is lacking for a live start{ends}"


@pytest.mark.parametrize(
    ("nodes", "says"),
    [
        ("https://one.example/key https://ONE.example:443/key/ https://two.example", "an address twice"),
        (
            "https://base-mainnet.infura.example/v3/a https://base.infura.example/v3/b",
            "several nodes of infura.example",
        ),
        ("https://a.node.co.uk https://b.node.co.uk", "several nodes of node.co.uk"),
        ("http://10.0.0.1:8545 http://10.0.0.1:8546", "several nodes of 10.0.0.1"),
    ],
)
def test_nodes_that_are_not_independent_are_named(nodes: str, says: str) -> None:
    [found] = [one for one in examine({**WHOLE, "RPC_BASE": nodes}) if one.level == ADVICE and one.name == "Chain base"]
    assert says in found.text
    assert found.how


@pytest.mark.parametrize(
    "nodes",
    ["https://a.node.co.uk https://a.other.co.uk", "http://10.0.0.1 http://10.0.0.2", "https://n.a.io https://n.b.io"],
)
def test_nodes_of_different_providers_are_right(nodes: str) -> None:
    assert levels({**WHOLE, "RPC_BASE": nodes})["Chain base"] == RIGHT


async def test_the_database_is_asked_itself(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (await database(database_url)).level == RIGHT

    async def pooled(_: str) -> bool:
        return False

    gone = await database("postgresql://nobody@127.0.0.1:1/none")
    assert (gone.level, "does not let us in" in gone.text) == (LACKING, True)
    monkeypatch.setattr("services.roles.writer_lease.keeps_sessions", pooled)
    found = await database(database_url)
    assert found.level == LACKING
    assert "transaction mode" in found.text
    assert "session mode" in found.how


async def test_a_database_of_a_newer_version_is_named(database_url: str) -> None:
    with psycopg.connect(libpq_url(database_url), autocommit=True) as admin:
        before = admin.execute("SELECT version_num FROM alembic_version").fetchone()
        admin.execute("UPDATE alembic_version SET version_num = '9999'")
    try:
        found = await database(database_url)
    finally:
        with psycopg.connect(libpq_url(database_url), autocommit=True) as admin:
            admin.execute("UPDATE alembic_version SET version_num = %s", before)
    assert found.level == LACKING
    assert "newer version" in found.text
    assert "9999" in found.text


@pytest.fixture
def guest(database_url: str) -> Iterator[str]:
    """The address of the same database for an account that has no rights of its own."""
    with psycopg.connect(libpq_url(database_url), autocommit=True) as admin:
        admin.execute("CREATE ROLE doctors_guest LOGIN")
        try:
            yield by("doctors_guest", database_url)
        finally:
            admin.execute("DROP OWNED BY doctors_guest")
            admin.execute("DROP ROLE doctors_guest")


async def test_a_database_that_lets_nobody_make_tables_is_named(database_url: str, guest: str) -> None:
    found = await database(guest)
    assert (found.level, "doctors_guest" in found.text) == (LACKING, True), found
    assert "GRANT CREATE ON SCHEMA public" in found.how


async def test_tables_of_another_account_are_named(database_url: str, guest: str) -> None:
    with psycopg.connect(libpq_url(database_url), autocommit=True) as admin:
        admin.execute("GRANT CREATE ON SCHEMA public TO doctors_guest")
    found = await database(guest)
    assert (found.level, "belong to another account" in found.text) == (LACKING, True), found


async def test_tables_of_an_extension_are_no_concern_of_ours(database_url: str, guest: str) -> None:
    own, theirs = (url.replace(urlsplit(url).path, "/doctors_own", 1) for url in (guest, database_url))
    with psycopg.connect(libpq_url(database_url), autocommit=True) as admin:
        admin.execute("CREATE DATABASE doctors_own OWNER doctors_guest")
        try:
            with psycopg.connect(libpq_url(theirs), autocommit=True) as extension:
                extension.execute("CREATE TABLE spatial_ref_sys (srid integer)")
            found = await database(own)
        finally:
            admin.execute("DROP DATABASE doctors_own WITH (FORCE)")
    assert found.level == RIGHT, found


async def test_a_database_without_room_for_every_name_is_named(database_url: str) -> None:
    narrow = database_url.replace(urlsplit(database_url).path, "/doctors_narrow", 1)
    with psycopg.connect(libpq_url(database_url), autocommit=True) as admin:
        admin.execute(
            "CREATE DATABASE doctors_narrow TEMPLATE template0 ENCODING SQL_ASCII LOCALE_PROVIDER libc LOCALE 'C'"
        )
        try:
            found = await database(narrow)
        finally:
            admin.execute("DROP DATABASE doctors_narrow WITH (FORCE)")
    assert (found.level, "SQL_ASCII" in found.text) == (LACKING, True), found


async def test_a_database_that_only_reads_is_named(database_url: str) -> None:
    found = await database(f"{database_url}&options=-c%20default_transaction_read_only%3Don")
    assert (found.level, "read-only" in found.text) == (LACKING, True), found


@pytest.mark.parametrize(
    "url",
    ["postgres//me:s3cret@db/x", "postgresql+asyncpg://me:s3cret@db/x", "postgresql://me:s3cret@db/x?pool_size=5"],
)
def test_an_address_that_is_none_of_a_postgresql_is_named_without_its_password(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DATABASE_URL", url)
    found = asyncio.run(database(url))
    assert found.level == LACKING
    assert "postgresql://user:password@host/database" in found.how
    assert main() == 1
    said = capsys.readouterr().out
    assert found.text in said
    assert "s3cret" not in said


async def test_few_connections_left_of_the_bot_are_named(database_url: str) -> None:
    assert [one.level for one in await connections(database_url)] == [RIGHT]
    await use(database_url)
    async with transaction() as db:
        await identifies.learn(db, SessionStarts(1000, 120, 3600.0, 1, 1))
    await use(None)
    (found,) = await connections(database_url)
    assert found.level == ADVICE
    assert found.text.startswith("120 of the 1,000 new connections")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("DISCORD_BOT_TOKENS", "DISCORD_BOT_TOKEN"),
        ("PUBLIC_ULR", "PUBLIC_URL"),
        ("RPC_ETHEREUM", None),
        ("DATABASE_URL", None),
        ("XDG_DATA_DIRS", None),
        ("HOLDFAST_HOME", None),
        ("POSTGRES_PASSWORD", None),
    ],
)
def test_a_name_that_is_almost_a_settings_is_named(name: str, meant: str | None) -> None:
    found = [one for one in examine({name: "1"}) if one.name == "Names of settings"]
    assert [(one.level, one.text, one.how) for one in found] == (
        [(ADVICE, f"Nothing reads {name}.", f"Is {meant} meant?")] if meant else []
    )


@pytest.mark.parametrize(("mode", "count"), [(0o600, 0), (0o400, 0), (0o640, 1), (0o604, 1), (0o622, 1)])
def test_an_env_file_that_others_may_open_is_named(tmp_path: Path, mode: int, count: int) -> None:
    file = tmp_path / ".env"
    assert list(env_file(file)) == []
    file.touch()
    file.chmod(mode)
    found = list(env_file(file))
    assert len(found) == count
    assert all(one.level == ADVICE and one.how == f"chmod 600 {file}" for one in found)


@pytest.mark.parametrize(
    ("chosen", "level", "said"),
    [
        ("", ADVICE, "goes on without"),
        ("auto", ADVICE, "goes on without"),
        ("on", ADVICE, "4014"),
        ("off", RIGHT, "does not ask"),
    ],
)
def test_what_the_members_intent_is_for_depends_on_the_setting(chosen: str, level: str, said: str) -> None:
    (found,) = [one for one in examine({**WHOLE, "MEMBERS_INTENT": chosen}) if one.name == "Server Members Intent"]
    assert (found.level, said in found.text, "4014" in found.text) == (level, True, chosen == "on")


def test_an_open_interface_is_named() -> None:
    assert "Interface" not in levels(WHOLE)
    assert levels({**WHOLE, "BIND": "0.0.0.0"})["Interface"] == ADVICE


ALCHEMY_THRICE = {
    "RPC_ETHEREUM": "https://eth-mainnet.g.alchemy.com/v2/key",
    "RPC_BASE": "https://base-mainnet.g.alchemy.com/v2/key",
    "RPC_POLYGON": "https://polygon-mainnet.g.alchemy.com/v2/key",
}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"RPC_BASE": "https://base-mainnet.g.alchemy.com/v2/key", "FOLLOW_SECONDS": "12"}, ["Alchemy", "base"]),
        (
            {"RPC_BASE": "https://a.example https://x.base-mainnet.quiknode.pro/key", "FOLLOW_SECONDS_BASE": "5"},
            ["QuickNode", "base"],
        ),
        ({"RPC_BASE": "https://base-mainnet.g.alchemy.com/v2/key"}, []),
        ({"RPC_ETHEREUM": "https://mainnet.infura.io/v3/key", "FOLLOW_SECONDS": "5"}, ["Infura", "ethereum"]),
        ({"RPC_SOLANA": "https://mainnet.helius-rpc.com/?api-key=key"}, []),
        ({"RPC_BASE": "https://base-mainnet.g.alchemy.com/v2/key", "FOLLOW_SECONDS": "60"}, []),
        ({"RPC_BASE": "https://base-mainnet.g.alchemy.com/v2/key", "FOLLOW_SECONDS": "inf"}, []),
        ({"RPC_BASE": "https://base-mainnet.g.alchemy.com/v2/key", "FOLLOW_SECONDS_BASE": "nan"}, []),
        ({"RPC_BASE": "https://base-mainnet.g.alchemy.com/v2/key", "FOLLOW_SECONDS_BASE": "0"}, []),
        (
            {"RPC_SOLANA": "https://mainnet.helius-rpc.com/?api-key=key", "SOLANA_FOLLOW_REQUESTS": "60"},
            ["Helius", "60 requests a minute"],
        ),
        ({"RPC_BASE": "https://node.example"}, []),
        # Each chain fits into the limit alone, but not all of them together.
        (ALCHEMY_THRICE, ["Alchemy Free", "138 %", "base, ethereum and polygon", "21.7 days of a month"]),
        (ALCHEMY_THRICE | {"FOLLOW_SECONDS_BASE": "0"}, []),
        (
            ALCHEMY_THRICE
            | {
                "RPC_BASE": "https://base-mainnet.g.alchemy.com/v2/key https://a.example",
                "RPC_POLYGON": "https://polygon-mainnet.g.alchemy.com/v2/key https://b.example",
            },
            [],
        ),
        ({"RPC_ETHEREUM": "https://mainnet.infura.io/v3/key", "RPC_WS_ETHEREUM": "wss://a.example"}, ["Infura"]),
        (
            {"RPC_ARBITRUM": "https://arb-mainnet.g.alchemy.com/v2/key", "FOLLOW_SECONDS": "600"},
            ["Alchemy", "arbitrum"],
        ),
    ],
)
def test_a_pace_that_is_too_much_for_free_plans_is_named(more: dict[str, str], said: list[str]) -> None:
    nodes = {f"RPC_{chain.upper()}": "" for chain in CHAINS}
    found = [one for one in examine(WHOLE | nodes | more) if one.name.startswith("Pace")]
    assert len(found) == bool(said)
    assert all(one.level == ADVICE for one in found)
    assert [part for part in said if part not in found[0].text] == []
    assert not any("/key" in one.text for one in found)


def test_a_setting_that_the_env_file_has_twice_is_named(tmp_path: Path) -> None:
    """The last one counts, such as an empty line of the template below one's own."""
    file = tmp_path / ".env"
    file.write_text("RPC_BASE=https://a.example\n# RPC_BASE=\nPORT=3000\nexport rpc_base=\n")
    file.chmod(0o600)
    (found,) = env_file(file)
    assert (found.level, "RPC_BASE" in found.text, "a.example" in found.text) == (ADVICE, True, False)


def test_data_in_a_directory_named_tilde_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", "/homes/somebody")
    monkeypatch.setattr(processes, "ROOT", tmp_path)
    assert list(data_directory({"DATA_DIR": "~/roles"})) == []
    (tmp_path / "~" / "roles").mkdir(parents=True)
    (found,) = data_directory({"DATA_DIR": "~/roles"})
    assert found.level == ADVICE
    assert f"{tmp_path}/~/roles" in found.text
    assert "/homes/somebody/roles" in found.text
