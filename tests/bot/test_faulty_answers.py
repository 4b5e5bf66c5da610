"""The bot while Discord has faults: every answer arrives, none comes twice, and Health gives the reason."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import nextcord
import pytest
from aiohttp import web
from sqlmodel import select, update

from bot import client, client_restart, heartbeat
from bot.client import build
from bot.commands import cogs
from bot.gateway import member_lists, shard_connection
from bot.interaction import delivery
from bot.interaction.presses import Presses
from gateways import gateways
from gateways.discord.invalid_requests import Refusals
from jobs import alert_sender
from jobs.alert_sender import ALERTS
from models import Alert, Breaker, ProviderState, Rule, Server, now, transaction
from sandbox.base.faults import hang_up
from sandbox.discord.actions import messages
from sandbox.discord.answers.errors import DiscordError
from sandbox.discord.answers.limits import Verdict, too_many
from sandbox.discord.answers.response import answered
from sandbox.discord.world.entities import Message
from services.core.actors import Actor
from services.guilds.gateway import identifies
from services.health import provider_records, server_health
from services.rules.expression import Requirement, to_document
from services.runtime import schedules
from settings import settings
from tests.bot.acquaintance import all_known, is_, members, names
from tests.bot.test_life import bot as bot
from tests.conftest import ANSWER_SECONDS
from tests.jobs.conftest import product as product
from tests.sandbox.conftest import BASE, Outside
from tests.sandbox.conftest import discord as discord

pytestmark = [
    pytest.mark.filterwarnings("ignore:parameter 'timeout' of type 'float':DeprecationWarning"),
    # A connection that the library was opening when its client had to end; the session closes it unprompted.
    pytest.mark.filterwarnings("ignore:Unclosed connection:ResourceWarning"),
]
Bot = Callable[[], AbstractAsyncContextManager[None]]
Answer = Callable[[web.Request], web.StreamResponse]
CHANNEL = str(int(BASE) + 100)
WAIT = 0.1
EVERYBODY = {"Ada", "Bob", "Carol", "Dave", "Erin", "Mallory", "HoldfastBot"}


@pytest.fixture
def sandbox_url(discord: Outside, monkeypatch: pytest.MonkeyPatch) -> str:
    """A Discord of this test's own, in this process, so that any fault can be set."""
    for module in ("interactions.interactions", "control.interactions"):
        monkeypatch.setattr(import_module(f"sandbox.discord.{module}"), "ANSWER_SECONDS", float(ANSWER_SECONDS))
    return discord.sandbox.url


def limited(scope: str, via: bool = True) -> Answer:
    """Return a 429 as Discord sends it, or as the edge in front of it does."""

    def answer(_: web.Request) -> web.StreamResponse:
        headers = {"X-RateLimit-Scope": scope, "Retry-After": "1", "X-RateLimit-Limit": "5"}
        if scope == "global":
            headers["X-RateLimit-Global"] = "true"
        made = answered(too_many(Verdict(False, scope, WAIT, headers)), 429, headers)
        if not via:
            del made.headers["Via"]
        return made

    return answer


def broken(status: int) -> Answer:
    return lambda _: answered({"message": "no", "code": 0}, status)


# The answer that comes first, and whether Discord had carried out the request by then.
FAULTS: dict[str, tuple[Answer, bool]] = {
    "limited": (limited("user"), False),
    "shared": (limited("shared"), False),
    "global": (limited("global"), False),
    "edge": (limited("user", via=False), False),
    "500": (broken(500), False),
    "503": (broken(503), False),
    "down": (hang_up, False),
    "nonsense": (lambda _: web.Response(body=b'{"id": "11', content_type="application/json"), False),
    "receipt": (broken(502), True),
}


class FaultyDiscord:
    """Gives each person's first `callback` or `edit` the fault that the person is named after."""

    def __init__(self, discord: Outside, monkeypatch: pytest.MonkeyPatch, stage: str) -> None:
        self.local = discord.sandbox.discord
        self.stage = stage
        self.met: set[str] = set()
        monkeypatch.setattr(self.local, "faulty", self.faulty)
        for name, reached in (("call_back", "callback"), ("edit", "edit")):
            done = getattr(self.local.interactions, name)
            monkeypatch.setattr(self.local.interactions, name, self.losing(done, reached))

    async def faulty(self, request: web.Request) -> web.StreamResponse | None:
        token = re.search(r"/(?:interactions|webhooks)/\d+/([^/]+)/", request.path)
        stage = "callback" if request.path.endswith("/callback") else "edit"
        name = self.name(token[1]) if token else ""
        if stage != self.stage or name not in FAULTS or name in self.met or FAULTS[name][1]:
            return None
        self.met.add(name)
        return FAULTS[name][0](request)

    def name(self, token: str) -> str:
        interaction = self.local.interactions._by_token[token]
        return self.local.world.users[interaction.user_id].username

    def losing(self, done: Callable[..., Any], reached: str) -> Callable[..., Any]:
        def act(*arguments: Any) -> Any:
            answer = done(*arguments)
            if reached == self.stage and "receipt" not in self.met:
                person = answer.user_id if reached == "callback" else arguments[0].user_id
                if self.local.world.users[person].username == "receipt":
                    self.met.add("receipt")
                    raise DiscordError(500, 0, "the receipt is lost")
            return answer

        return act


@pytest.mark.parametrize("stage", ["callback", "edit"])
async def test_an_answer_comes_through_any_fault_and_only_once(
    discord: Outside, bot: Bot, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    for name in FAULTS:
        await discord.control("people", username=name)
        await discord.control("members", guild=BASE, user=name, action="join")
    async with bot():
        await is_(lambda: commands_of(discord), COMMANDS)
        faulty = FaultyDiscord(discord, monkeypatch, stage)

        async def asks(name: str) -> list[str]:
            body = {"guild": BASE, "user": name, "kind": "command", "name": "help"}
            said = await discord.http.post("/control/interactions", json=body, timeout=60)
            assert said.status_code == 200, (name, said.text)
            return [embed["title"] for message in said.json()["messages"] for embed in message["embeds"]]

        answers = await asyncio.gather(*(asks(name) for name in FAULTS))
    assert dict(zip(FAULTS, answers, strict=True)) == {name: ["HoldfastBot in short"] for name in FAULTS}
    assert faulty.met == set(FAULTS)


@pytest.fixture
def met(discord: Outside, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> dict[str, int]:
    """The faults met by each kind of request other than interactions: one after the other before it passes."""
    local, seen = discord.sandbox.discord, dict[str, int]()

    faults: tuple[str, ...] = request.param

    async def faulty(request: web.Request) -> web.StreamResponse | None:
        call = f"{request.method} {re.sub(r'[0-9]{5,}', '_', request.path.removeprefix('/discord/api/v10'))}"
        passed = seen.get(call, 0)
        if "/interactions/" in call or "/webhooks/" in call or passed == len(faults):
            return None
        seen[call] = passed + 1
        return FAULTS[faults[passed]][0](request)

    monkeypatch.setattr(local, "faulty", faulty)
    return seen


@pytest.mark.parametrize("met", [("limited", "shared", "global"), ("500", "503")], indirect=True)
async def test_every_other_call_comes_through_too_and_nothing_is_made_twice(
    discord: Outside, met: dict[str, int], living: None
) -> None:
    await is_(names, EVERYBODY)
    assert {"help", "verify"} <= set(COMMANDS)
    await is_(lambda: commands_of(discord), COMMANDS)
    await is_(gateway_state, ("ok", None))

    async def set_up() -> str:
        body = {"guild": BASE, "user": "ada", "kind": "command", "name": "setup"}
        said = await discord.http.post("/control/interactions", json=body, timeout=60)
        return said.json()["messages"][0]["embeds"][0]["title"]

    # After an outage it is not known whether a channel was made: the answer says so, and ada asks again.
    await is_(set_up, "The verification channel is ready")
    panels = [one["messages"] for one in (await discord.guild(BASE))["channels"] if one["name"] == "verify"]
    assert [len(messages) for messages in panels] == [1]
    mine = "/applications/_/commands"
    reads = {"GET /users/@me", "GET /gateway/bot", "GET /guilds/_/members", f"GET {mine}", "GET /guilds/_/channels"}
    assert set(met) >= reads | {f"POST {mine}", "POST /guilds/_/channels", "POST /channels/_/messages"}


COMMANDS = sorted(str(one.name) for cog in cogs(Presses()) for one in cog.application_commands)


async def commands_of(discord: Outside) -> list[str]:
    """Return the names of the commands that Discord offers, one for each occurrence."""
    return sorted(one.definition["name"] for one in discord.sandbox.discord.world.commands.values())


async def test_a_refusal_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    assert delivery.is_temporary(OSError())
    assert delivery.is_temporary(KeyError("id"))
    tries: list[int] = []

    async def send() -> None:
        tries.append(1)
        raise OSError

    monkeypatch.setattr(delivery, "FIRST_ANSWER_SECONDS", 0.0)
    assert await delivery.first(send) is False
    assert len(tries) == 1


async def test_what_the_library_is_refused_counts_with_our_own_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = SimpleNamespace(discord=SimpleNamespace(refusals=Refusals()))
    monkeypatch.setattr("bot.interaction.delivery.gateways", lambda: ours)
    forbidden: Any = SimpleNamespace(status=403, reason="Forbidden")
    missing: Any = SimpleNamespace(status=404, reason="Not Found")
    faults = [nextcord.Forbidden(forbidden, "no"), nextcord.NotFound(missing, "gone"), OSError()]

    async def send() -> None:
        raise faults.pop(0)

    monkeypatch.setattr(delivery, "FIRST_ANSWER_SECONDS", 0.0)
    while faults:
        assert await delivery.first(send) is False
    assert ours.discord.refusals.untold == 1


async def test_what_is_being_handled_when_the_bot_closes_comes_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    bot, begun, ended = client.Bot(intents=nextcord.Intents.none()), asyncio.Event(), list[str]()
    monkeypatch.setattr(client, "ENDS_WITHIN", 0.5)

    async def on_quick() -> None:
        begun.set()
        await asyncio.sleep(0.05)
        ended.append("quick")

    async def on_slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("slow")

    for handler in (on_quick, on_slow):
        bot.event(handler)
        bot.dispatch(handler.__name__.removeprefix("on_"))
    await begun.wait()
    await bot.close()
    assert ended == ["quick", "slow"]


async def test_commands_are_no_longer_registered_when_the_connection_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    registering, order = asyncio.Event(), list[str]()

    async def register(_: object) -> None:
        registering.set()
        try:
            await asyncio.Event().wait()
        finally:
            order.append("registration ended")

    async def close(_: object) -> None:
        order.append("session closed")

    monkeypatch.setattr(client.commands.AutoShardedBot, "on_connect", register)
    monkeypatch.setattr(client.commands.AutoShardedBot, "close", close)
    bot = client.Bot(intents=nextcord.Intents.none())
    bot.dispatch("connect")
    await registering.wait()
    await bot.close()
    assert order == ["registration ended", "session closed"]


async def server() -> Server:
    async with transaction() as db:
        return (await db.exec(select(Server).where(Server.discord_id == BASE))).one()


@pytest.fixture
async def living(product: None, discord: Outside, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """The bot with short pauses, where everybody is stored."""
    await all_known(discord)
    for module in (client, member_lists, shard_connection, client_restart):
        monkeypatch.setattr(module, "FIRST_PAUSE", 0.05)
    monkeypatch.setattr(shard_connection, "LONGEST_PAUSE", 0.2)
    monkeypatch.setattr(client_restart, "LONGEST_PAUSE", 0.2)
    monkeypatch.setattr(client_restart, "REFUSED_PAUSE", 0.2)
    monkeypatch.setattr(client_restart, "CHECKED_EVERY", 0.05)
    monkeypatch.setattr(heartbeat, "PAUSE_SECONDS", 0.3)
    monkeypatch.setattr(identifies, "SPACING_SECONDS", 0.0)  # no other shard has just identified
    task = asyncio.create_task(client_restart.live(build, settings().discord_bot_token.get_secret_value()))
    yield
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def gateway_state() -> tuple[str, str | None]:
    async with transaction() as db:
        row = (await provider_records.states(db)).get(provider_records.BOT)
    return (row.state, row.reason) if row else ("unheard", None)


@pytest.fixture
def insisting(product: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator who accepts no session without the intent."""
    monkeypatch.setenv("MEMBERS_INTENT", "on")
    settings.cache_clear()


async def test_a_refused_intent_says_on_health_which_switch_to_turn_on_and_the_bot_comes_when_it_is(
    discord: Outside, insisting: None, living: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    await is_(names, EVERYBODY)
    await discord.control("application", members_intent="off")
    discord.sandbox.discord.gateway.sessions.clear()
    await discord.control("gateway", action="drop")
    row = await server()

    async def shown() -> tuple[str, bool]:
        async with transaction() as db:
            ada = Actor(0, row.owner_id or "", "ada")
            seen = await server_health.view(db, gateways(), ada, row.id or 0)
        return seen.bot.state, "Turn on Server Members Intent: Developer Portal › Bot." in seen.bot.text

    await is_(shown, ("bad", True))
    await discord.control("application", members_intent="on")
    await is_(gateway_state, ("ok", None))


async def test_what_happened_while_the_gateway_was_cut_for_long_is_known_when_it_is_back(
    discord: Outside, living: None
) -> None:
    await is_(gateway_state, ("ok", None))

    async def known() -> dict[str, tuple[bool, int]]:
        return {one.name: (one.left_at is None, len(one.roles)) for one in await members()}

    async def carol() -> tuple[bool, int] | None:
        return (await known()).get("Carol")

    await is_(carol, (True, 0))
    await discord.control("faults", target="gateway", kind="down", seconds=600)
    await is_(_state_alone, "down")
    discord.sandbox.discord.gateway.sessions.clear()  # so long that Discord drops the session
    await discord.control("members", guild=BASE, user="carol", action="add_role", role="Whale")
    await discord.control("members", guild=BASE, user="dave", action="leave")
    new = await discord.control("people", username="newcomer")
    await all_known(discord)
    await discord.control("members", guild=BASE, user=new["id"], action="join")
    await discord.http.delete("/control/faults")
    await is_(gateway_state, ("ok", None))

    async def caught_up() -> list[object]:
        seen = await known()
        return [seen["Carol"], seen["Dave"][0], seen.get("Newcomer")]

    await is_(caught_up, [(True, 1), False, (True, 0)])


async def _state_alone() -> str:
    return (await gateway_state())[0]


def lose_the_first_receipt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make Discord post the first message but report a failure."""
    post, lost = messages.posted, list[str]()

    def posted(local: Any, message: Message) -> None:
        post(local, message)
        if not lost:
            lost.append(message.id)
            raise DiscordError(500, 0, "the receipt is lost")

    monkeypatch.setattr(messages, "posted", posted)


async def test_the_log_channel_reports_each_problem_once_and_its_end_also_if_a_receipt_is_lost(
    discord: Outside, living: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    await is_(names, EVERYBODY)
    row = await server()
    roles = {role["name"]: role for role in (await discord.guild(BASE))["roles"]}
    whale = roles["Whale"]["id"]
    async with transaction() as db:
        kept = await db.get_one(Server, row.id)
        kept.log_channel_id = CHANNEL
        leaf = Requirement("basic", "base", "0x" + "c0" * 20)
        db.add(kept)
        db.add(Rule(
            server_id=row.id or 0, name="Cats", role_id=whale, role_name="Whale", verification_type="basic",
            contract_address="0x" + "c0" * 20, blockchain="base", created_by="1", expression=to_document(leaf),
        ))  # fmt: skip

    async def told() -> list[str]:
        async with transaction() as db:
            await schedules.bring_forward(db, ALERTS)
        await alert_sender.once()
        channel = next(one for one in (await discord.guild(BASE))["channels"] if one["id"] == CHANNEL)
        return [message["embeds"][0]["title"] for message in channel["messages"]]

    lose_the_first_receipt(monkeypatch)
    await discord.control("guilds", guild=BASE, action="move_role", role="Whale", position=90)
    broken_order = "Role order broken: the rule Cats is paused"
    await is_(told, [broken_order])
    async with transaction() as db:
        # As after a crash between posting the message and recording it.
        await db.exec(update(Alert).values(told_at=None, attempts=1, next_at=now()))
    await is_(told, [broken_order])
    await discord.control("guilds", guild=BASE, action="move_role", role="Whale", position=3)
    await is_(told, [broken_order, f"Fixed: {broken_order}"])

    async with transaction() as db:
        db.add(Breaker(server_id=row.id or 0, role_id=whale, would_lose=7, holders=9))
        db.add(ProviderState(provider="base:0", state="down", reason="No answer.",
                             since=now() - timedelta(minutes=2), checked_at=now()))  # fmt: skip
    weak = str(int(roles["HoldfastBot"]["permissions"]) & ~(1 << 4))
    await discord.control("guilds", guild=BASE, action="edit_role", role="HoldfastBot", permissions=weak)

    async def news() -> set[str]:
        return set((await told())[2:])

    stopped, node = "Removals of Whale were stopped", "Base node 1 does not answer as it should"
    await is_(news, {stopped, node, "The bot lacks permissions"})
    assert len(await told()) == 5
