"""Without the Members intent: stored people are read one by one in each sweep, and roles are given and restored."""

from typing import Any

import pytest
from sqlalchemy import text
from sqlmodel import select

from bot import member_reader
from gateways import gateways
from models import Grant, Rule, Server, Wallet, transaction
from sandbox.discord.world import intents
from services.accounts import users
from services.core import queue
from services.core.actors import Actor
from services.guilds import members_intent
from services.health import server_health
from services.roles import in_doubt
from services.rules.expression import Requirement, to_document
from services.rules.types.any_wallet import AnyWallet
from services.triggers import sweep
from services.wallets import wallets
from settings import settings
from tests.bot.acquaintance import is_, members, names
from tests.bot.test_faulty_answers import EVERYBODY, gateway_state, server
from tests.bot.test_faulty_answers import living as living
from tests.bot.test_faulty_answers import sandbox_url as sandbox_url
from tests.jobs.conftest import Engine
from tests.jobs.conftest import engine as engine
from tests.jobs.conftest import product as product
from tests.sandbox.conftest import BASE, Outside
from tests.sandbox.conftest import discord as discord

pytestmark = [
    pytest.mark.filterwarnings("ignore:parameter 'timeout' of type 'float':DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Unclosed connection:ResourceWarning"),
]
WITHOUT = ("ok", members_intent.NOT_TOLD)
ADDRESS = "0x" + "ab" * 20


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PAUSE_SECONDS", "REST_SECONDS", "SWITCH_SECONDS"):
        monkeypatch.setattr(member_reader, name, 0.15)


@pytest.fixture
async def off(discord: Outside) -> None:
    """An application that lacks the intent before the bot starts."""
    await discord.control("application", members_intent="off")


def asked(discord: Outside) -> list[int]:
    """Return the intents of the gateway sessions that the sandbox has now."""
    return [one.intents for one in discord.sandbox.discord.gateway.sessions.values()]


async def uses_the_bot(discord: Outside, who: str) -> None:
    async def answered() -> bool:
        body = {"guild": BASE, "user": who, "kind": "command", "name": "wallets", "wait": 30}
        return (await discord.http.post("/control/interactions", json=body, timeout=60)).status_code == 200

    await is_(answered, True)  # once the commands are registered
    await is_(lambda: is_known(who), True)


async def is_known(who: str) -> bool:
    return any(one.name.casefold() == who and one.left_at is None for one in await members())


async def id_of(discord: Outside, who: str) -> str:
    return str((await discord.member(BASE, who))["user_id"])


async def proves(discord: Outside, who: str) -> Actor:
    discord_id = await id_of(discord, who)
    async with transaction() as db:
        user_id = await users.ensure(db, discord_id, who)
        db.add(Wallet(user_id=user_id, family="evm", address=ADDRESS, method="opensea_bio"))
        await db.flush()
        await queue.mark_people(db, [discord_id])
    return Actor(user_id, discord_id, who)


async def a_rule_for(discord: Outside, role: str) -> None:
    """Create a rule that gives the role to everybody with a verified wallet."""
    role_id = next(one["id"] for one in (await discord.guild(BASE))["roles"] if one["name"] == role)
    leaf = Requirement("any_wallet", "", "", details=AnyWallet())
    async with transaction() as db:
        server_id = (await server()).id or 0
        db.add(
            Rule(
                server_id=server_id, name="A rule", role_id=role_id, role_name=role, created_by="0",
                verification_type="any_wallet", contract_address="", blockchain="", expression=to_document(leaf),
            )
        )  # fmt: skip
        await db.flush()
        await queue.mark_server(db, server_id, queue.CHANGED)


async def has(discord: Outside, who: str, role: str) -> bool:
    guild = await discord.guild(BASE)
    role_id = next(one["id"] for one in guild["roles"] if one["name"] == role)
    return any(role_id in one["roles"] for one in guild["members"] if one["username"] == who)


async def sweeps() -> None:
    async with transaction() as db:
        await sweep.start_sweep(db)


async def grants() -> list[str]:
    async with transaction() as db:
        return list((await db.exec(select(Grant.state))).all())


async def paths(discord: Outside) -> set[tuple[str, str]]:
    """Return the requests that reached Discord."""
    told: dict[str, Any] = (await discord.http.get("/control/requests", params={"since": 0})).json()
    return {(one["method"], one["path"].partition("?")[0]) for one in told["requests"] if one["target"] == "discord"}


async def test_the_main_path_needs_no_list_and_no_event_of_members(
    discord: Outside, off: None, living: None, engine: Engine
) -> None:
    await is_(gateway_state, WITHOUT)
    assert asked(discord) == [intents.GUILDS]
    async with engine():
        await is_(names, set())
        await uses_the_bot(discord, "carol")
        await a_rule_for(discord, "Whale")
        carol = await proves(discord, "carol")
        await is_(lambda: has(discord, "carol", "Whale"), True)
        await is_(grants, ["held"])
        # A member who left and came back lost the role, and no event reported either.
        for action in ("leave", "join"):
            await discord.control("members", guild=BASE, user="carol", action=action)
        assert not await has(discord, "carol", "Whale")
        await sweeps()
        await is_(lambda: has(discord, "carol", "Whale"), True)
        await is_(grants, ["held"])
        # A member who is away during a sweep and comes back is found by the next one.
        await discord.control("members", guild=BASE, user="carol", action="leave")
        await sweeps()
        await is_(lambda: is_known("carol"), False)
        await is_(grants, [])
        await discord.control("members", guild=BASE, user="carol", action="join")
        await sweeps()
        await is_(lambda: has(discord, "carol", "Whale"), True)
        async with transaction() as db:
            # The gift from before they left could arrive for a minute, which passes.
            await db.execute(text("UPDATE unanswered SET at = at - CAST(:late AS interval)"), {"late": in_doubt.LATE})
            (wallet,) = await wallets.list_wallets(db, carol)
            await wallets.remove(db, carol, wallet.id)
        await is_(lambda: has(discord, "carol", "Whale"), False)
    assert (await names()) == {"Carol"}, "nobody else is stored"
    lists = [path for method, path in await paths(discord) if method == "GET" and path.endswith("/members")]
    assert len(lists) <= 1, "one refusal says that there are none"


async def test_a_role_that_an_admin_takes_is_noticed_by_the_sweep_and_not_given_again(
    discord: Outside, off: None, living: None, engine: Engine
) -> None:
    await is_(gateway_state, WITHOUT)
    async with engine():
        await uses_the_bot(discord, "carol")
        await a_rule_for(discord, "Whale")
        await proves(discord, "carol")
        await is_(lambda: has(discord, "carol", "Whale"), True)
        await is_(grants, ["held"])
        await discord.control("members", guild=BASE, user="carol", action="remove_role", role="Whale")
        await sweeps()
        await is_(grants, ["lost"])
    assert not await has(discord, "carol", "Whale")


async def test_only_people_with_a_wallet_or_a_role_of_ours_are_read_and_each_once_a_sweep(
    discord: Outside, off: None, living: None
) -> None:
    await is_(gateway_state, WITHOUT)
    for who in ("carol", "dave"):
        await uses_the_bot(discord, who)
    await proves(discord, "carol")
    await sweeps()
    carol, dave = await id_of(discord, "carol"), await id_of(discord, "dave")

    async def read() -> int:
        async with transaction() as db:
            late = "SELECT count(*) FROM member WHERE seen_at > (SELECT started_at FROM schedule WHERE name = 'sweep')"
            return int((await db.execute(text(late))).scalar_one())

    await is_(read, 1)
    said = [path for method, path in await paths(discord) if method == "GET"]
    assert (f"/guilds/{BASE}/members/{carol}" in "".join(said), f"/members/{dave}" in "".join(said)) == (True, False)


async def test_who_runs_the_server_stays_listed(discord: Outside, living: None) -> None:
    await is_(names, EVERYBODY)
    row = await server()

    async def admins() -> int:
        async with transaction() as db:
            return int((await db.execute(text("SELECT count(*) FROM access"))).scalar_one())

    async def listed() -> bool:
        return await admins() > 0

    await is_(listed, True)
    before = await admins()
    await discord.control("application", members_intent="off")
    discord.sandbox.discord.gateway.sessions.clear()
    await discord.control("gateway", action="drop")
    await is_(gateway_state, WITHOUT)
    await is_(lambda: _intents(discord), [intents.GUILDS])
    await discord.control("guilds", action="edit_guild", guild=BASE, name="Renamed")

    async def renamed() -> str:
        return (await server()).name

    await is_(renamed, "Renamed")
    assert await admins() == before
    async with transaction() as db:
        seen = await server_health.view(db, gateways(), Actor(0, row.owner_id or "", "ada"), row.id or 0)
    assert (seen.bot.state, seen.bot.text) == ("warning", f"The bot is in this server. {members_intent.NOT_TOLD}")


async def _intents(discord: Outside) -> list[int]:
    return asked(discord)


async def test_the_intent_is_used_as_soon_as_it_is_switched_on(discord: Outside, off: None, living: None) -> None:
    await is_(gateway_state, WITHOUT)
    await discord.control("application", members_intent="on")
    await is_(names, EVERYBODY)
    await is_(gateway_state, ("ok", None))
    assert asked(discord) == [intents.GUILDS | intents.GUILD_MEMBERS]


async def test_an_intent_that_is_switched_off_under_a_quiet_session_is_noticed_and_so_is_its_return(
    discord: Outside, living: None
) -> None:
    await is_(names, EVERYBODY)
    await discord.control("application", members_intent="off")
    await is_(gateway_state, WITHOUT)
    await discord.control("members", guild=BASE, user="carol", action="leave")
    await discord.control("application", members_intent="on")
    await is_(gateway_state, ("ok", None))
    await is_(lambda: is_known("carol"), False)
    assert asked(discord) == [intents.GUILDS | intents.GUILD_MEMBERS], "one session all the time"


@pytest.fixture
def chosen(product: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator who does without the intent."""
    monkeypatch.setenv("MEMBERS_INTENT", "off")
    settings.cache_clear()


async def is_seen() -> bool:
    """Return whether the bot has reported its guild."""
    async with transaction() as db:
        return (await db.exec(select(Server).where(Server.discord_id == BASE))).one_or_none() is not None


async def test_an_operator_can_do_without_the_intent(discord: Outside, chosen: None, living: None) -> None:
    await is_(gateway_state, ("ok", members_intent.NOT_ASKED))
    assert asked(discord) == [intents.GUILDS]
    await is_(is_seen, True)
    row = await server()
    async with transaction() as db:
        seen = await server_health.view(db, gateways(), Actor(0, row.owner_id or "", "ada"), row.id or 0)
    assert (seen.bot.state, seen.bot.mend) == ("good", None)


async def test_a_failed_read_of_somebody_is_tried_again_and_changes_nothing(
    discord: Outside, off: None, living: None, caplog: pytest.LogCaptureFixture
) -> None:
    await is_(gateway_state, WITHOUT)
    await uses_the_bot(discord, "carol")
    await proves(discord, "carol")
    path = f"/guilds/{BASE}/members/{await id_of(discord, 'carol')}"
    await discord.control("faults", target="discord", kind="answer", path=path, status=403, body={"code": 50001})
    await discord.control("members", guild=BASE, user="carol", action="leave")
    await sweeps()

    async def told() -> bool:
        return "could not be read" in caplog.text

    await is_(told, True)
    assert await is_known("carol"), "no answer is not leaving"
    await discord.http.delete("/control/faults")
    await is_(lambda: is_known("carol"), False)
