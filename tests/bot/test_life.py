"""The bot's life: restarts, broken connections, refused logins, and guild changes meanwhile."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from time import monotonic
from typing import Any

import nextcord
import pytest
from sqlmodel import col, select

from bot import client, member_reader
from bot import client_restart as life
from bot.client import build
from bot.gateway import member_lists
from bot.heartbeat import tell
from gateways import gateways
from locales.stored_texts import said
from models import Grant, Member, Notice, Rule, Server, transaction
from services.accounts import users
from services.core.actors import Actor
from services.guilds import verification_channel
from services.guilds.gateway import identifies
from services.health import provider_records, readiness
from settings import settings
from tests.bot.test_events import AWAY
from tests.jobs.conftest import Engine
from tests.jobs.conftest import engine as engine
from tests.jobs.conftest import product as product
from tests.jobs.conftest import town as town
from tests.jobs.town import Town, until

pytestmark = pytest.mark.filterwarnings("ignore:parameter 'timeout' of type 'float':DeprecationWarning")
Bot = Callable[[], AbstractAsyncContextManager[None]]


@pytest.fixture
def bot(product: None) -> Bot:
    """A context manager that runs the bot in this process, ready when the block begins."""

    @asynccontextmanager
    async def running() -> AsyncIterator[None]:
        began = monotonic()
        task = asyncio.create_task(life.live(build, settings().discord_bot_token.get_secret_value()))

        async def ready() -> bool:
            assert not task.done(), task.exception()
            async with transaction() as db:
                return await readiness.bot_ready(db, monotonic() - began)

        try:
            await until(ready)
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    return running


async def act(town: Town, who: str, kind: str, **more: Any) -> dict[str, Any]:
    return await town.call("interactions", guild=town.name, user=town.people[who]["id"], kind=kind, wait=30, **more)


async def make_panel(town: Town) -> None:
    async with transaction() as db:
        owner = Actor(0, town.people["ada"]["id"], "ada")
        await verification_channel.create_or_repair(db, gateways(), owner, town.server_id)


async def row(town: Town, who: str) -> Member | None:
    async with transaction() as db:
        return await db.get(Member, (town.server_id, town.people[who]["id"]))


async def rule_state(rule_id: int) -> tuple[str, str | None]:
    async with transaction() as db:
        found = await db.get_one(Rule, rule_id)
        return found.state, found.pause_cause


async def is_(state: Callable[[], Awaitable[object]], wanted: object) -> None:
    """Wait until the condition holds."""

    async def so() -> bool:
        return await state() == wanted

    await until(so)


async def test_a_panel_from_before_a_restart_answers_its_buttons(town: Town, bot: Bot) -> None:
    async with bot():
        await make_panel(town)
        first = await act(town, "carol", "button", custom_id="holdfast:verify")
        assert first["modal"]["title"] == "Verify a wallet"
    async with bot():
        said = await act(town, "carol", "button", custom_id="holdfast:roles")
        assert said["messages"][0]["embeds"][0]["title"] == "Your roles"
        # A form opened before the restart can still be sent.
        fields = {"address": town.wallet("carol"), "method": "opensea_bio"}
        claimed = await act(town, "carol", "modal", custom_id="holdfast:claim", fields=fields)
        assert claimed["messages"][0]["embeds"][0]["title"].startswith("Verify 0x")


async def test_who_waits_for_a_check_learns_that_the_bot_stops_and_presses_the_button_later(
    town: Town, bot: Bot
) -> None:
    fields = {"address": town.wallet("carol"), "method": "opensea_bio"}
    async with bot():
        await make_panel(town)
        await act(town, "carol", "button", custom_id="holdfast:verify")
        claimed = await act(town, "carol", "modal", custom_id="holdfast:claim", fields=fields)
        assert "I check again automatically" in str(claimed["messages"])
    (shown,) = (await town.control.get(f"/control/interactions/{claimed['id']}")).json()["messages"]
    assert shown["embeds"][0]["title"] == "I stopped checking"
    assert "I am being restarted" in shown["embeds"][0]["description"]
    check = next(one for row in shown["components"] for one in row["components"] if one["label"] == "Check now")
    async with bot():
        said = await act(town, "carol", "button", custom_id=check["custom_id"])
        assert said["messages"][0]["embeds"][0]["title"] == "Not there yet"


async def test_after_a_drop_and_a_malformed_event_it_answers_and_has_missed_nothing(town: Town, bot: Bot) -> None:
    async with bot():
        for action, role in (("drop", "Whale"), ("malformed", "Collector")):
            await town.call("gateway", action=action)
            dave, wanted = town.people["dave"]["id"], await town.role(role)
            await town.call("members", guild=town.name, user=dave, action="add_role", role=wanted)

            async def heard(wanted: str = wanted) -> bool:
                seen = await row(town, "dave")
                return seen is not None and wanted in seen.roles

            await until(heard)
        said = await act(town, "carol", "command", name="help")
        assert said["messages"][0]["ephemeral"] is True


async def identifies_left(town: Town) -> int:
    token = settings().discord_bot_token.get_secret_value()
    answer = await town.control.get("/discord/api/v10/gateway/bot", headers={"Authorization": f"Bot {token}"})
    return answer.json()["session_start_limit"]["remaining"]


async def test_events_that_the_library_cannot_read_cost_no_connection(
    town: Town, bot: Bot, caplog: pytest.LogCaptureFixture
) -> None:
    async with bot():
        left = await identifies_left(town)
        for event, payload in (("GUILD_MEMBER_UPDATE", {"guild_id": "x", "user": 7}), ("GUILD_ROLE_CREATE", None)):
            await town.call("gateway", action="send", event=event, payload=payload, times=20)
        dave, wanted = town.people["dave"]["id"], await town.role("Whale")
        await town.call("members", guild=town.name, user=dave, action="add_role", role=wanted)

        async def heard() -> bool:
            seen = await row(town, "dave")
            return seen is not None and wanted in seen.roles

        await until(heard)
        assert await identifies_left(town) == left
    lines = [record.getMessage() for record in caplog.records if "could not be read" in record.getMessage()]
    assert [line for line in lines if line.startswith("skipped")] == [lines[0], lines[-1]]
    assert lines[-1].endswith("count=39 events=GUILD_MEMBER_UPDATE:19,GUILD_ROLE_CREATE:20")


async def test_a_bot_without_identifies_left_connects_when_the_day_is_over(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "WAIT_SECONDS", 0.05)
    left = await identifies_left(town)
    await town.call("application", identifies_left=identifies.KEPT_BACK)
    task = asyncio.create_task(life.live(build, settings().discord_bot_token.get_secret_value()))
    try:

        async def told() -> bool:
            async with transaction() as db:
                found = (await provider_records.states(db)).get(provider_records.BOT)
            return found is not None and "no more connections" in (found.reason or "")

        await until(told)
        assert await identifies_left(town) == identifies.KEPT_BACK
        await town.call("application", identifies_left=left)

        async def connected() -> bool:
            async with transaction() as db:
                return await readiness.bot_ready(db, None)

        await until(connected)
        assert await identifies_left(town) == left - 1
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await town.call("application", identifies_left=1000)


async def test_who_rejoins_has_their_roles_at_once_and_screening_is_waited_for(
    town: Town, bot: Bot, engine: Engine
) -> None:
    await town.rule("Holder")
    carol = town.people["carol"]["id"]
    async with bot(), engine():
        await town.prove("carol")
        await town.buys("carol")
        await town.look()
        await is_(lambda: town.has("carol", "Holder"), True)
        await town.call("members", guild=town.name, user=carol, action="leave")
        await town.call("members", guild=town.name, user=carol, action="join")
        await is_(lambda: town.has("carol", "Holder"), True)

        await town.call("members", guild=town.name, user=carol, action="leave")
        await is_(lambda: _left(town, "carol"), True)
        await town.call("members", guild=town.name, user=carol, action="join", pending=True)
        await is_(lambda: _screened(town, "carol"), True)
        assert not await town.has("carol", "Holder")
        await town.call("members", guild=town.name, user=carol, action="set_pending", pending=False)
        await is_(lambda: town.has("carol", "Holder"), True)


async def _screened(town: Town, who: str) -> bool:
    seen = await row(town, who)
    return seen is not None and seen.left_at is None and seen.pending


async def _left(town: Town, who: str) -> bool:
    seen = await row(town, who)
    return seen is not None and seen.left_at is not None


async def test_a_dangerous_or_moved_role_a_missing_permission_and_a_kick_pause_and_heal_by_themselves(
    town: Town, bot: Bot
) -> None:
    made = await town.call("guilds", action="add_role", guild=town.name, name="Prize", permissions="0", position=1)
    await town.see()
    rule_id = await town.rule("Prize")
    own = next(role for role in (await town.guild())["roles"] if role["managed"])
    weak = str(int(own["permissions"]) & ~(1 << 28))

    async def change(role: str, **more: Any) -> None:
        await town.call("guilds", guild=town.name, role=role, **more)

    async with bot():
        for cause, role, action, broken, mended in (
            ("dangerous", made["id"], "edit_role", {"permissions": "2"}, {"permissions": "0"}),
            ("above_bot", made["id"], "move_role", {"position": 90}, {"position": 1}),
            ("linked", made["id"], "edit_role", {"tags": {"guild_connections": None}}, {"tags": {}}),
            ("managed", made["id"], "edit_role", {"tags": {"premium_subscriber": None}}, {"tags": {}}),
            ("manage_roles", own["id"], "edit_role", {"permissions": weak}, {"permissions": own["permissions"]}),
        ):
            await change(role, action=action, **broken)
            await is_(lambda: rule_state(rule_id), ("paused", cause))
            await change(role, action=action, **mended)
            await is_(lambda: rule_state(rule_id), ("active", None))
        await town.call("guilds", guild=town.name, action="kick_bot")
        await is_(lambda: rule_state(rule_id), ("paused", "bot_away"))
        await town.call("guilds", guild=town.name, action="add_bot")
        await is_(lambda: rule_state(rule_id), ("active", None))
        await change(made["id"], action="delete_role")
        await is_(lambda: rule_state(rule_id), ("paused", "role_gone"))


async def test_a_role_that_somebody_took_is_told_at_the_next_meeting_and_not_fought_over(
    town: Town, bot: Bot, engine: Engine
) -> None:
    await town.rule("Holder")
    async with bot(), engine():
        await town.prove("carol")
        await town.buys("carol")
        await town.look()

        async def ledger() -> list[str]:
            async with transaction() as db:
                return list((await db.exec(select(Grant.state).where(Grant.server_id == town.server_id))).all())

        await is_(ledger, ["held"])
        carol = town.people["carol"]["id"]
        await town.call("members", guild=town.name, user=carol, action="remove_role", role=await town.role("Holder"))
        await is_(ledger, ["lost"])
        said = await act(town, "carol", "command", name="why")
        first = said["messages"][0]["embeds"][0]
        assert (first["title"], "Somebody else took Holder from you" in first["description"]) == (
            "Since we last met", True,
        )  # fmt: skip
        assert await town.has("carol", "Holder") is False

        async def told() -> bool:
            async with transaction() as db:
                waiting = await db.exec(select(Notice).where(Notice.discord_id == carol, col(Notice.told_at).is_(None)))
                return waiting.first() is None

        await until(told)


async def test_a_deleted_channel_is_forgotten(town: Town, bot: Bot) -> None:
    async with bot():
        async with transaction() as db:
            owner = Actor(0, town.people["ada"]["id"], "ada")
            made = await verification_channel.create_or_repair(db, gateways(), owner, town.server_id)
        token = settings().discord_bot_token.get_secret_value()
        await town.control.delete(
            f"/discord/api/v10/channels/{made.channel_id}", headers={"Authorization": f"Bot {token}"}
        )

        async def stored() -> str | None:
            async with transaction() as db:
                return (await db.get_one(Server, town.server_id, populate_existing=True)).verify_channel_id

        await is_(stored, None)


async def test_a_rejected_token_is_told_on_health_and_tried_again(
    product: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    rests: list[float] = []

    async def resting(seconds: float, sentence: str) -> None:
        await tell(sentence)
        rests.append(seconds)
        if len(rests) > 1:
            # Ending during this pause interrupts no attempt to connect.
            await asyncio.Event().wait()

    monkeypatch.setattr(life, "_rest", resting)
    task = asyncio.create_task(life.live(build, "no.such.token"))

    async def again() -> bool:
        return len(rests) > 1

    await until(again)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert rests == [life.REFUSED_PAUSE] * 2
    async with transaction() as db:
        found = (await provider_records.states(db))[provider_records.BOT]
    assert (found.state, found.reason) == ("down", life.NO_TOKEN)


@pytest.mark.parametrize(
    ("fault", "says", "somebody_must_act"),
    [
        (nextcord.PrivilegedIntentsRequired(0), "Turn on Server Members Intent", True),
        (nextcord.LoginFailure("no"), "Reset Token", True),
        (nextcord.GatewayNotFound(), "cannot be reached", False),
        (OSError("no route"), "cannot be reached", False),
        (KeyError("guild_id"), "could not be read (KeyError)", False),
        (AWAY[0], "database does not answer (OperationalError)", False),
        (AWAY[-1], "database does not answer (TimeoutError)", False),
        (None, "connection ended", False),
    ],
)
def test_each_end_has_its_reason(fault: BaseException | None, says: str, somebody_must_act: bool) -> None:
    sentence, refused = life.reason(fault)
    assert says in said(sentence)
    assert refused is somebody_must_act


@pytest.mark.parametrize(
    ("fault", "resumable"), [(KeyError("guild_id"), False), *((fault, True) for fault in AWAY)], ids=repr
)
async def test_sessions_are_resumed_after_an_end_that_says_nothing_against_them(
    fault: Exception, resumable: bool
) -> None:
    class Ends:
        """A client that ends with the fault."""

        is_resumable = None

        async def start(self, token: str, *, reconnect: bool) -> None:
            raise fault

        async def close(self) -> None:
            pass

    ends = Ends()
    assert await life._one_life(ends, "token") is fault  # pyright: ignore[reportArgumentType]
    assert ends.is_resumable is resumable


async def test_a_client_that_loses_its_cancellation_ends_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(life, "CANCELLED_EVERY", 0.01)
    monkeypatch.setattr(life, "CLOSES_WITHIN", 0.01)
    began = asyncio.Event()

    class Deaf:
        """A part that loses the first cancellation, as the library does when it coincides with an answer."""

        may_ask_for_members = False

        def __init__(self, told: bool) -> None: ...

        async def start(self, token: str, *, reconnect: bool) -> None:
            began.set()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
            await asyncio.Event().wait()

        async def close(self) -> None:
            pass

    task = asyncio.create_task(life.live(Deaf, "token"))  # pyright: ignore[reportArgumentType]
    await began.wait()
    task.cancel()
    async with asyncio.timeout(5):
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_members_who_cannot_be_listed_at_first_are_known_as_soon_as_discord_answers(
    town: Town, bot: Bot, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = nextcord.Guild.fetch_members
    answers: list[Any] = [OSError("no answer"), []]

    def failing(guild: nextcord.Guild, **options: Any) -> Any:
        if str(guild.id) != guild_id or not answers:
            return listed(guild, **options)
        answer = answers.pop()

        async def told() -> AsyncIterator[nextcord.Member]:
            if isinstance(answer, OSError):
                raise answer
            for member in answer:
                yield member

        return told()

    guild_id = (await town.guild())["id"]
    await town.see(without="carol")
    async with transaction() as db:
        await users.ensure(db, town.people["carol"]["id"], "carol")
    monkeypatch.setattr(nextcord.Guild, "fetch_members", failing)
    monkeypatch.setattr(member_lists, "FIRST_PAUSE", 0.01)
    # Carol signed in, so the bot would read her by her id too; only the list may store her here.
    monkeypatch.setattr(member_reader, "PAUSE_SECONDS", 3600.0)
    async with bot():
        await until(lambda: _known(town, "carol"))
        assert answers == []
        known = await row(town, "dave")
        assert known is not None
        assert known.left_at is None


async def _known(town: Town, who: str) -> bool:
    return await row(town, who) is not None
