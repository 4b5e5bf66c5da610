"""Odd, repeated, late and missing gateway events: the stored guild becomes right, and nobody loses a role."""

from typing import Any

import pytest
from sqlmodel import select

from app import live_check
from bot import unreadable_event_rereads
from gateways import gateways
from models import Grant, Member, Rule, Server, transaction
from services.core.actors import Actor
from services.guilds import members_intent
from services.health import server_health
from services.rules.expression import Requirement, to_document
from settings import settings
from tests.bot.acquaintance import all_known, is_, is_ready, members, names
from tests.bot.test_faulty_answers import EVERYBODY, server
from tests.bot.test_faulty_answers import living as living
from tests.bot.test_faulty_answers import sandbox_url as sandbox_url
from tests.jobs.conftest import product as product
from tests.sandbox.conftest import BASE, Outside
from tests.sandbox.conftest import discord as discord

pytestmark = [
    pytest.mark.filterwarnings("ignore:parameter 'timeout' of type 'float':DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Unclosed connection:ResourceWarning"),
]


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unreadable_event_rereads, "FIRST_PAUSE", 0.02)
    monkeypatch.setattr(unreadable_event_rereads, "LONGEST_PAUSE", 0.1)


async def named(name: str) -> Member | None:
    return next((one for one in await members() if one.name == name), None)


async def roles_of(name: str) -> int | None:
    """Return how many roles are stored for a person, or None for one who is not a member."""
    found = await named(name)
    return None if found is None or found.left_at is not None else len(found.roles)


async def spoil(discord: Outside, event: str) -> None:
    await discord.control("gateway", action="spoil", event=event, guild=BASE)


async def test_an_unreadable_change_of_a_member_is_read_from_discord_instead(discord: Outside, living: None) -> None:
    await is_(names, EVERYBODY)
    await spoil(discord, "GUILD_MEMBER_UPDATE")
    await discord.control("members", guild=BASE, user="carol", action="add_role", role="Whale")
    await is_(lambda: roles_of("Carol"), 1)


async def test_an_unreadable_newcomer_is_known_and_heard_from_then_on(discord: Outside, living: None) -> None:
    await is_(names, EVERYBODY)
    await discord.control("people", username="zoe")
    await all_known(discord)
    await spoil(discord, "GUILD_MEMBER_ADD")
    await discord.control("members", guild=BASE, user="zoe", action="join")
    await is_(lambda: roles_of("Zoe"), 0)
    await discord.control("members", guild=BASE, user="zoe", action="add_role", role="Whale")
    await is_(lambda: roles_of("Zoe"), 1)


async def test_an_event_that_does_not_say_whom_it_is_about_has_the_whole_list_read(
    discord: Outside, living: None
) -> None:
    await is_(names, EVERYBODY)
    for action in ("add_role", "leave"):
        await discord.control("gateway", action="lose", guild=BASE)
        role = {"role": "Whale"} if action == "add_role" else {}
        await discord.control("members", guild=BASE, user="carol", action=action, **role)
        unclear = {"guild_id": BASE, "user": {"name": "somebody"}}
        await discord.control("gateway", action="send", event="GUILD_MEMBER_UPDATE", payload=unclear)
        await is_(lambda: roles_of("Carol"), 1 if action == "add_role" else None)


async def test_many_unreadable_members_are_read_as_a_list_and_an_outage_meanwhile_is_waited_for(
    discord: Outside, living: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    await is_(names, EVERYBODY)
    monkeypatch.setattr(unreadable_event_rereads, "MOST", 2)
    await discord.control("faults", target="discord", kind="answer", path="/guilds/*/members*", status=404, times=3)
    await discord.control("gateway", action="spoil", event="GUILD_MEMBER_UPDATE", guild=BASE, times=3)
    for who in ("carol", "dave", "erin"):
        await discord.control("members", guild=BASE, user=who, action="add_role", role="Whale")
    await is_(lambda: same(discord), True)


async def test_one_false_word_does_not_make_a_member_leave_whose_event_was_unreadable(
    discord: Outside, living: None
) -> None:
    await is_(names, EVERYBODY)
    body = {"message": "Unknown Member", "code": 10007}
    path = f"/guilds/{BASE}/members/*"
    await discord.control(
        "faults", target="discord", kind="answer", method="GET", path=path, status=404, body=body, times=2
    )
    await spoil(discord, "GUILD_MEMBER_UPDATE")
    await discord.control("members", guild=BASE, user="carol", action="add_role", role="Whale")
    await is_(lambda: roles_of("Carol"), 1)


CLUB = "Cool Holders Club"


async def known_servers() -> dict[str, bool]:
    """Return the stored servers, and whether the bot is in them."""
    async with transaction() as db:
        return {row.name: row.bot_invited for row in (await db.exec(select(Server))).all()}


async def answers_everybody(discord: Outside, guild: str) -> bool:
    """Return whether the stored members of a guild are Discord's."""
    shown = next(one for one in (await discord.world())["guilds"] if one["name"] == guild)
    async with transaction() as db:
        found = await db.exec(
            select(Member).join(Server).where(Server.name == guild, Member.left_at == None)  # noqa: E711
        )
        ours = {one.discord_id: set(one.roles) for one in found.all()}
    return ours == {one["user_id"]: set(one["roles"]) for one in shown["members"]}


async def test_a_guild_whose_first_event_is_unreadable_is_served_all_the_same(discord: Outside, living: None) -> None:
    await is_(names, EVERYBODY)
    await discord.control("gateway", action="spoil", event="GUILD_CREATE", guild=CLUB)
    await discord.control("guilds", guild=CLUB, action="add_bot")
    await is_(known_servers, {"Base Builders": True, CLUB: True})
    await is_(lambda: answers_everybody(discord, CLUB), True)
    # Events there are heard from now on.
    await discord.control("members", guild=CLUB, user="carol", action="add_role", role="Whale")
    await is_(lambda: answers_everybody(discord, CLUB), True)
    await discord.control("guilds", guild=CLUB, action="kick_bot")
    await is_(known_servers, {"Base Builders": True, CLUB: False})


@pytest.fixture
async def spoilt(discord: Outside) -> None:
    """A guild that the library cannot read when the bot connects."""
    await spoil(discord, "GUILD_CREATE")


async def test_a_guild_that_is_unreadable_at_the_start_is_read_from_discord_instead(
    discord: Outside, spoilt: None, living: None
) -> None:
    await is_(names, EVERYBODY)
    await is_(lambda: same(discord), True)


@pytest.mark.parametrize("poison", ["roles", "channels"])
async def test_a_guild_that_comes_back_half_readable_loses_no_role_and_pauses_no_rule(
    discord: Outside, living: None, poison: str
) -> None:
    await is_(names, EVERYBODY)
    rule_id = await a_rule(await whale(discord))
    shown = (await discord.bot("GET", f"/guilds/{BASE}")).json()
    if poison == "roles":
        # The library replaces its cached objects as it reads, until it fails.
        shown["roles"] = [*shown["roles"][:1], {"id": "7"}]
    else:
        shown["channels"] = [{"id": "8", "type": 0}]
    await discord.control("members", guild=BASE, user="dave", action="leave")
    await discord.control("gateway", action="send", event="GUILD_CREATE", payload={**shown, "unavailable": False})
    await discord.control("members", guild=BASE, user="carol", action="add_role", role="Whale")
    await is_(lambda: same(discord), True)
    await discord.control("guilds", action="edit_guild", guild=BASE, name="Base Makers")
    await is_(lambda: same(discord), True)
    assert await rule_state(rule_id) == ("active", None)


async def test_an_unreadable_guild_is_asked_for_until_discord_answers(discord: Outside, living: None) -> None:
    await is_(names, EVERYBODY)
    path = "/guilds/*"
    for answer in ({"status": 404}, {"status": 200, "body": "<html>"}):
        await discord.control("faults", target="discord", kind="answer", method="GET", path=path, times=1, **answer)
    await discord.control("gateway", action="spoil", event="GUILD_CREATE", guild=CLUB)
    await discord.control("guilds", guild=CLUB, action="add_bot")
    await is_(lambda: answers_everybody(discord, CLUB), True)


async def test_an_unreadable_guild_that_the_bot_has_left_is_asked_for_no_longer(
    discord: Outside, living: None, caplog: pytest.LogCaptureFixture
) -> None:
    await is_(names, EVERYBODY)
    await discord.control(
        "gateway", action="send", event="GUILD_CREATE", payload={"id": "1170000000000009000", "roles": 7}
    )

    async def given_up() -> bool:
        return any("gave up a guild" in record.getMessage() for record in caplog.records)

    await is_(given_up, True)
    assert await known_servers() == {"Base Builders": True}


async def a_rule(role: str) -> int:
    """Create a rule of the server for this role and return its id."""
    row = await server()
    leaf = Requirement("basic", "base", "0x" + "c0" * 20)
    async with transaction() as db:
        made = Rule(
            server_id=row.id or 0, name="Cats", role_id=role, role_name="Whale", verification_type="basic",
            contract_address="0x" + "c0" * 20, blockchain="base", created_by="1", expression=to_document(leaf),
        )  # fmt: skip
        db.add(made)
        await db.flush()
        return made.id or 0


async def rule_state(rule_id: int) -> tuple[str, str | None]:
    async with transaction() as db:
        found = await db.get_one(Rule, rule_id, populate_existing=True)
        return found.state, found.pause_cause


async def whale(discord: Outside) -> str:
    return next(role["id"] for role in (await discord.guild(BASE))["roles"] if role["name"] == "Whale")


async def test_an_unreadable_change_of_a_role_is_judged_all_the_same(discord: Outside, living: None) -> None:
    await is_(names, EVERYBODY)
    role = await whale(discord)
    rule_id = await a_rule(role)
    await spoil(discord, "GUILD_ROLE_UPDATE")
    await discord.control("guilds", guild=BASE, action="edit_role", role="Whale", permissions="8")
    await is_(lambda: rule_state(rule_id), ("paused", "dangerous"))


async def test_a_role_of_which_the_library_has_not_heard_is_gone_only_if_discord_says_so_too(
    discord: Outside, living: None
) -> None:
    await is_(names, EVERYBODY)
    await discord.control("gateway", action="lose", event="GUILD_ROLE_CREATE", guild=BASE, times=1)
    made = await discord.control("guilds", guild=BASE, action="add_role", name="Prize", permissions="0", position=1)
    prize, other = await a_rule(made["id"]), await a_rule(await whale(discord))
    async with transaction() as db:
        who = (await db.exec(select(Member))).all()[0]
        db.add(Grant(**who.model_dump(include={"server_id", "discord_id"}), role_id=made["id"], rule_ids=[prize],
                     state="held"))  # fmt: skip

    async def holders() -> int:
        async with transaction() as db:
            return len((await db.exec(select(Grant))).all())

    async def judged(permissions: str, *state: str | None) -> None:
        await discord.control("guilds", guild=BASE, action="edit_role", role="Whale", permissions=permissions)
        await is_(lambda: rule_state(other), state)

    await judged("8", "paused", "dangerous")
    assert (await rule_state(prize), await holders()) == (("active", None), 1)
    await discord.control("guilds", guild=BASE, action="delete_role", role=made["id"])
    await judged("0", "active", None)
    # A check that asked Discord before the deletion may store the permissions of after it; another check follows.
    await is_(lambda: rule_state(prize), ("paused", "role_gone"))
    assert await holders() == 0


async def picture(discord: Outside) -> dict[str, Any]:
    """Return the stored guild beside Discord's own: members with their roles, its name and its owner."""
    shown = await discord.guild(BASE)
    async with transaction() as db:
        row = (await db.exec(select(Server).where(Server.discord_id == BASE))).one()
    return {
        "discord": (
            shown["name"],
            shown["owner_id"],
            {one["user_id"]: sorted(one["roles"]) for one in shown["members"]},
        ),
        "ours": (
            row.name,
            row.owner_id,
            {one.discord_id: sorted(one.roles) for one in await members() if one.left_at is None},
        ),
    }


async def same(discord: Outside) -> bool:
    seen = await picture(discord)
    return seen["discord"] == seen["ours"]


@pytest.mark.parametrize("action", ["double", "reorder"])
async def test_events_that_come_twice_or_out_of_order_leave_the_right_picture(
    discord: Outside, living: None, action: str
) -> None:
    await is_(names, EVERYBODY)
    await discord.control("gateway", action=action, guild=BASE, times=3 if action == "double" else 1)
    await discord.control("members", guild=BASE, user="carol", action="add_role", role="Whale")
    await discord.control("members", guild=BASE, user="dave", action="leave")
    await discord.control("members", guild=BASE, user="erin", action="add_role", role="Holder")
    await is_(lambda: same(discord), True)


def identifies_left(discord: Outside) -> int:
    return discord.sandbox.discord.gateway.starts.view()["remaining"]


async def fewer(discord: Outside, left: int) -> bool:
    return identifies_left(discord) < left


@pytest.mark.parametrize("session", ["the same", "a new"])
async def test_an_outage_pauses_nothing_and_what_happened_in_it_is_known_afterwards(
    discord: Outside, living: None, session: str
) -> None:
    await is_(names, EVERYBODY)
    await is_(is_ready, True)
    rule_id = await a_rule(await whale(discord))
    await discord.control("gateway", action="unavailable", guild=BASE)
    await discord.control("members", guild=BASE, user="carol", action="add_role", role="Whale")
    await discord.control("members", guild=BASE, user="dave", action="leave")
    await discord.control("guilds", action="edit_guild", guild=BASE, name="Base Makers", owner="bob")
    if session == "a new":
        left = identifies_left(discord)
        await discord.control("gateway", action="send", payload={"op": 9, "d": False})
        await is_(lambda: fewer(discord, left), True)
    async with transaction() as db:
        row = (await db.exec(select(Server).where(Server.discord_id == BASE))).one()
    assert (row.bot_invited, await rule_state(rule_id)) == (True, ("active", None))
    assert (await roles_of("Carol"), await roles_of("Dave")) == (0, 0)
    await discord.control("gateway", action="available", guild=BASE)
    await is_(lambda: same(discord), True)
    assert await rule_state(rule_id) == ("active", None)


@pytest.mark.parametrize(
    "disturbances",
    [
        [{"action": "send", "payload": {"op": op, "d": d}} for op, d in ((7, None), (9, True), (9, False), (1, None))],
        [{"action": "close", "code": code} for code in (1001, 4000, 4008, 4009)],
    ],
    ids=["sent", "closed"],
)
async def test_whatever_ends_the_connection_nothing_is_missed(
    discord: Outside, living: None, disturbances: list[dict[str, Any]]
) -> None:
    await is_(names, EVERYBODY)
    for number, disturbed in enumerate(disturbances):
        action, owner = ("remove_role", "ada") if number % 2 else ("add_role", "bob")
        await discord.control("gateway", **disturbed)
        await discord.control("members", guild=BASE, user="carol", action=action, role="Whale")
        await discord.control("guilds", action="edit_guild", guild=BASE, owner=owner)
        await is_(lambda: same(discord), True)


@pytest.fixture
async def absent(discord: Outside) -> None:
    """A guild with the bot in it that is unavailable before the bot connects."""
    await discord.control("guilds", action="add_bot", guild="Cool Holders Club")
    await discord.control("gateway", action="unavailable", guild="Cool Holders Club")


async def test_a_guild_that_comes_after_ready_or_never_keeps_no_other_waiting(
    discord: Outside, absent: None, living: None
) -> None:
    await is_(names, EVERYBODY)
    await is_(lambda: same(discord), True)
    async with transaction() as db:
        known = {row.name for row in (await db.exec(select(Server))).all()}
    assert known == {"Base Builders"}
    await discord.control("gateway", action="available", guild="Cool Holders Club")

    async def both() -> set[str]:
        async with transaction() as db:
            return {row.name for row in (await db.exec(select(Server))).all()}

    await is_(both, {"Base Builders", "Cool Holders Club"})


OFF = f"The bot is in this server. {members_intent.NOT_TOLD}"


async def bot_health(discord: Outside) -> tuple[str, str]:
    row = await server()
    async with transaction() as db:
        seen = await server_health.view(db, gateways(), Actor(0, row.owner_id or "", "ada"), row.id or 0)
    return seen.bot.state, seen.bot.text


async def test_an_intent_that_is_switched_off_under_the_bot_is_said_once_in_one_sentence_and_heals(
    discord: Outside, living: None, caplog: pytest.LogCaptureFixture
) -> None:
    await is_(names, EVERYBODY)
    await is_(lambda: bot_health(discord), ("good", "The bot is in this server and listens."))
    await discord.control("application", members_intent="off")
    await discord.control("members", guild=BASE, user="carol", action="add_role", role="Whale")
    unclear = {"guild_id": BASE, "user": {}}
    await discord.control("gateway", action="send", event="GUILD_MEMBER_UPDATE", payload=unclear)
    await is_(lambda: bot_health(discord), ("warning", OFF))
    assert (await roles_of("Carol"), await roles_of("Dave")) == (0, 0), "nobody left, and nothing more is known"
    said = [record.getMessage() for record in caplog.records if record.levelname == "CRITICAL"]
    assert said == [members_intent.NOT_TOLD]
    await discord.control("application", members_intent="on")
    await is_(lambda: bot_health(discord), ("good", "The bot is in this server and listens."))
    await is_(lambda: same(discord), True)


@pytest.mark.parametrize(("switch", "right"), [("off", False), ("limited", True), ("on", True)])
async def test_the_live_check_says_which_switch_is_off(
    discord: Outside, product: None, switch: str, right: bool
) -> None:
    await discord.control("application", members_intent=switch)
    found = await live_check._asked(  # pyright: ignore[reportPrivateUsage]
        "the application",
        lambda: live_check._application(gateways(), settings()),  # pyright: ignore[reportPrivateUsage]
    )
    assert (found.good, "Server Members Intent is off" in found.text) == (right, not right)


async def test_a_member_whom_the_library_cannot_read_keeps_nobody_else_from_being_listed(
    discord: Outside, living: None
) -> None:
    await is_(names, EVERYBODY)
    await discord.control("gateway", action="lose", guild=BASE, times=2)
    for who in ("carol", "dave"):
        await discord.control("members", guild=BASE, user=who, action="add_role", role="Whale")
    listed = (await discord.bot("GET", f"/guilds/{BASE}/members?limit=1000")).json()
    for member in listed:
        if member["user"]["username"] == "carol":
            member["roles"] = 7
    path = f"/guilds/{BASE}/members"
    await discord.control("faults", target="discord", kind="answer", path=path, status=200, body=listed)
    unclear = {"guild_id": BASE, "user": {}}
    await discord.control("gateway", action="send", event="GUILD_MEMBER_UPDATE", payload=unclear)
    await is_(lambda: same(discord), True)
