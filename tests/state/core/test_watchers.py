"""Loops behind a screen: one of a kind in a tab whatever is sent, ending with the tab."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
import reflex as rx
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as NoneFree

from services.collections.census import reach as reach_service
from services.collections.census.reach import ReachView
from services.core.actors import Actor
from services.core.errors import TooMany
from services.engine.previews import preview as preview_service
from services.engine.previews import try_address as trial_service
from services.engine.previews.preview import Impact
from services.engine.previews.proposals import RuleChange
from services.engine.previews.try_address import Trial
from services.runtime import rate_limits
from services.servers import servers
from services.wallets import bio_schedule, names, wallets
from state.account import wallet_proof
from state.account import wallets as wallets_state
from state.account.wallet_proof import WalletProofState
from state.account.wallets import WalletRowView, WalletsState
from state.core import gate, timing, watchers
from state.dashboard import invite
from state.dashboard.invite import InviteState
from state.dashboard.servers import DashboardState
from state.rule_form import preview, reach, try_address
from state.rule_form.preview import RulePreviewState
from state.rule_form.reach import ReachState
from state.rule_form.try_address import TrialState
from tests.state.conftest import Beside

ADA = Actor(1, "1", "ada")
EVENTS = 150


class Screen:
    """What the loops read: whether the tab exists, whose session it is, and how often they looked."""

    def __init__(self) -> None:
        self.open, self.actor, self.looks, self.refuses = True, ADA, 0, False
        self.spent = Counter[rate_limits.Limit]()
        self.goes_on = asyncio.Event()


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """A screen whose loops look every few milliseconds, with services that only count."""
    found = Screen()

    async def is_open(tab: str) -> bool:
        return found.open

    async def actor_of(state: object) -> Actor:
        return found.actor

    @asynccontextmanager
    async def transaction() -> AsyncIterator[None]:
        yield

    async def listed(*_: object) -> list[servers.ServerView]:
        found.looks += 1
        return []

    async def checked(*_: object) -> wallets.Verdict:
        found.looks += 1
        return wallets.Verdict(success=False, message="Not found yet.", again=True)

    async def spend(limit: rate_limits.Limit, user_id: int) -> None:
        assert user_id == ADA.user_id
        found.spent[limit] += 1
        if found.refuses:
            raise TooMany("That was too often.", 60)

    monkeypatch.setattr(watchers, "is_open", is_open)
    monkeypatch.setattr(timing, "AWAY_SECONDS", 0.1)
    monkeypatch.setattr(rate_limits, "spend", spend)
    monkeypatch.setattr(servers, "list_servers", listed)
    monkeypatch.setattr(wallets, "check_again", checked)
    for module in (gate, watchers):
        monkeypatch.setattr(module, "actor_of", actor_of)
    for module in (invite, wallet_proof, __import__("state.dashboard.servers", fromlist=["servers"])):
        monkeypatch.setattr(module, "transaction", transaction)
    monkeypatch.setattr(invite, "INVITE_POLL_SECONDS", 0.02)
    monkeypatch.setattr(bio_schedule, "FIRST", 0.02)
    monkeypatch.setattr(bio_schedule, "LONGEST", 0.02)
    monkeypatch.setattr("state.dashboard.servers.INVITE_POLL_SECONDS", 0.02)
    return found


Start = Callable[[], Coroutine[Any, Any, None]]


async def loops(kind: str) -> tuple[Beside, Start]:
    """Return the state behind a loop on its page, and a function that starts one event."""
    of = {"bio": WalletProofState, "invite": InviteState, "servers": DashboardState}[kind]
    path = {"bio": "/verify", "invite": "/invite", "servers": "/dashboard"}[kind]
    root = rx.State()
    root._update_router_vars({"headers": {}, "pathname": path, "asPath": path}, {})
    state = Beside(await root.get_state(of))
    handler = cast(Any, of.event_handlers["look_again" if kind == "bio" else "watch"].fn)
    if kind == "bio":
        state.looking, state._looks = True, bio_schedule.BioChecks(0.02, 0.02)

    async def start() -> None:
        outcome = handler(state, *((state._look,) if kind == "bio" else ()))
        if kind == "invite":
            await outcome
        else:
            async for _ in outcome:
                pass

    return state, start


async def until(holds: Callable[[], bool]) -> None:
    """Wait for a condition, up to a deadline that no healthy machine reaches."""
    async with asyncio.timeout(30):
        while not holds():
            await asyncio.sleep(0.01)


KINDS = pytest.mark.parametrize("kind", ["bio", "invite", "servers"])


@KINDS
async def test_many_events_are_one_loop_and_it_ends_with_the_tab(screen: Screen, kind: str) -> None:
    _, start = await loops(kind)
    tasks = [asyncio.create_task(start()) for _ in range(EVENTS)]
    await until(lambda: screen.looks > 3)
    assert sum(not task.done() for task in tasks) == 1
    screen.open = False
    await until(lambda: all(task.done() for task in tasks))
    for task in tasks:
        task.result()
    assert not watchers._newest


@KINDS
async def test_a_loop_ends_on_another_page_and_with_the_session(screen: Screen, kind: str) -> None:
    state, start = await loops(kind)
    task = asyncio.create_task(start())
    await until(lambda: screen.looks > 0)
    other = {"headers": {}, "pathname": "/help", "asPath": "/help"}
    state._get_root_state()._update_router_vars(other, {})
    await until(task.done)
    _, start = await loops(kind)
    task = asyncio.create_task(start())
    looked = screen.looks
    await until(lambda: screen.looks > looked)
    screen.actor = Actor(2, "2", "bob")
    await until(task.done)


async def test_a_tab_that_comes_back_is_refreshed_again_and_not_while_it_is_away(
    screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timing, "AWAY_SECONDS", 3600.0)
    _, start = await loops("bio")
    screen.open = False
    task = asyncio.create_task(start())
    asked: list[str] = []

    async def is_open(tab: str) -> bool:
        asked.append(tab)
        return screen.open

    monkeypatch.setattr(watchers, "is_open", is_open)
    await until(lambda: len(asked) > 5)
    assert screen.looks == 0
    screen.open = True
    await until(lambda: screen.looks > 0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_looks_at_a_bio_are_counted_as_proofs(screen: Screen) -> None:
    state, start = await loops("bio")
    screen.refuses = True
    task = asyncio.create_task(start())
    await asyncio.sleep(0.1)
    assert (screen.looks, task.done()) == (0, False)
    screen.refuses = False
    await until(lambda: screen.looks > 0)
    assert state.looking
    assert set(screen.spent) == {rate_limits.PROOFS}
    screen.open = False
    await until(task.done)
    assert not state.looking, "a form whose loop has ended does not say that it looks"


@KINDS
@pytest.mark.parametrize("place", ["session", "step"])
@pytest.mark.parametrize(
    "fault",
    [OperationalError("SELECT", {}, Exception("the server closed the connection")), NoneFree("no connection is free")],
    ids=["away", "none free"],
)
async def test_a_loop_goes_on_after_the_database_was_away(
    screen: Screen, monkeypatch: pytest.MonkeyPatch, kind: str, place: str, fault: Exception
) -> None:
    state, start = await loops(kind)
    failed = list[str]()
    where = (watchers, "actor_of") if place == "session" else (wallets, "check_again")
    if place == "step" and kind != "bio":
        where = (servers, "list_servers")
    own = getattr(*where)

    async def sometimes(*given: Any) -> Any:
        if len(failed) < 2:
            failed.append(kind)
            raise fault
        return await own(*given)

    monkeypatch.setattr(*where, sometimes)
    task = asyncio.create_task(start())
    await until(lambda: screen.looks > 1 or task.done())
    assert (len(failed), task.done()) == (2, False)
    screen.open = False
    await until(task.done)
    assert kind != "bio" or not state.looking


SPENT = {
    "visible": None,
    "names": rate_limits.LOOKUPS,
    "name": rate_limits.LOOKUPS,
    "chains": rate_limits.PROOFS,
    "impact": rate_limits.PREVIEWS,
    "trial": rate_limits.PREVIEWS,
}


@pytest.fixture
def slow(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    """Services that do not answer before the screen continues."""

    async def work(*_: object) -> Any:
        screen.looks += 1
        await screen.goes_on.wait()
        return {}

    async def resolve(*_: object) -> tuple[str, str]:
        await work()
        return "ada.eth", "0x12"

    async def impacts(*_: object) -> AsyncGenerator[Impact]:
        yield Impact()

    async def answered(*_: object) -> Trial:
        return Trial("no", (), "0x12", None)

    monkeypatch.setattr(DashboardState, "_read", work)
    monkeypatch.setattr(names, "primary_names", work)
    monkeypatch.setattr(names, "resolve", resolve)
    monkeypatch.setattr(wallets, "follow", work)
    monkeypatch.setattr(preview, "plan", work)
    monkeypatch.setattr(preview_service, "impacts", impacts)
    monkeypatch.setattr(trial_service, "plan", work)
    monkeypatch.setattr(trial_service, "run", answered)
    transaction = invite.transaction
    for module in (preview, try_address, wallets_state):
        monkeypatch.setattr(module, "transaction", transaction)
    monkeypatch.setattr("state.dashboard.servers.VISIBLE_AGAIN_SECONDS", 0.02)
    monkeypatch.setattr(wallet_proof, "NAME_REST_SECONDS", 0.02)


async def single(kind: str) -> Start:
    """Return a function that starts one event of a kind that looks once."""
    of, handler = {
        "visible": (DashboardState, "visibility_changed"),
        "names": (WalletsState, "name_rows"),
        "name": (WalletProofState, "look_up"),
        "chains": (WalletProofState, "follow"),
        "impact": (RulePreviewState, "watch"),
        "trial": (TrialState, "watch"),
    }[kind]
    root = rx.State()
    path = "/dashboard" if kind == "visible" else "/verify"
    root._update_router_vars({"headers": {}, "pathname": path, "asPath": path}, {})
    made: Any = await root.get_state(of)
    if kind == "names":
        made.rows = [WalletRowView(1, "0x12", "0x12", "base", "bio", "today")]
    if kind == "impact":
        made._ask(RuleChange(1, {}))
    if kind == "trial":
        made._proposal = RuleChange(1, {})
    state, function = Beside(made), cast(Any, of.event_handlers[handler].fn)
    given: tuple[object, ...] = (False,) if kind == "visible" else (made._entry,) if kind == "name" else ()

    async def start() -> None:
        outcome = function(state, *given)
        if kind == "visible":
            async for _ in outcome:
                pass
        else:
            await outcome

    return start


@pytest.mark.parametrize("kind", list(SPENT))
async def test_what_waits_once_is_one_of_a_kind_however_many_events_come(screen: Screen, slow: None, kind: str) -> None:
    start = await single(kind)
    tasks = [asyncio.create_task(start()) for _ in range(EVENTS)]
    await until(lambda: screen.looks > 0)
    tasks += [asyncio.create_task(start()) for _ in range(EVENTS)]
    await until(lambda: sum(not task.done() for task in tasks) == 2)
    assert screen.looks == 1, "the newest waits for the one at work"
    screen.goes_on.set()
    await until(lambda: all(task.done() for task in tasks))
    for task in tasks:
        task.result()
    assert screen.looks == 2
    assert screen.spent == ({} if SPENT[kind] is None else {SPENT[kind]: 2})
    await until(lambda: not watchers._newest and not watchers._at_work)


@pytest.mark.parametrize("kind", list(SPENT))
async def test_what_waits_once_asks_nothing_for_a_tab_that_has_gone(screen: Screen, slow: None, kind: str) -> None:
    screen.open = False
    start = await single(kind)
    task = asyncio.create_task(start())
    await until(task.done)
    task.result()
    assert screen.looks == 0


Fn = Callable[..., Any]


def _handler(of: type[rx.State], name: str) -> Fn:
    return cast(Any, of.event_handlers[name].fn)


async def _asks(root: rx.State, kind: str, who: str) -> tuple[rx.State, Start]:
    """Ask a question as the person who is signed in, and return its state and a function that runs its loop."""
    of, loop = {
        "impact": (RulePreviewState, "watch"),
        "trial": (TrialState, "watch"),
        "reach": (ReachState, "watch"),
        "name": (WalletProofState, "look_up"),
        "bio": (WalletProofState, "look_again"),
    }[kind]
    state: Any = await root.get_state(of)
    given: tuple[object, ...] = ()
    if kind == "impact":
        state._ask(RuleChange(1, {}))
    elif kind == "trial":
        await _handler(TrialState, "try_address")(state, {try_address.ADDRESS_INPUT: who})
    elif kind == "reach":
        await _handler(ReachState, "count")(state)
    else:
        async for _ in _handler(WalletProofState, "enter_address")(state, f"{who}.eth" if kind == "name" else "0x12"):
            pass
        given = (state._entry if kind == "name" else state._look,)
    if kind == "bio":
        state.looking, state._looks = True, bio_schedule.BioChecks(0.02, 0.02)

    async def start() -> None:
        outcome = _handler(of, loop)(Beside(state), *given)
        if kind == "bio":
            async for _ in outcome:
                pass
        else:
            await outcome

    return state, start


@pytest.mark.parametrize("kind", ["impact", "trial", "reach", "name", "bio"])
async def test_an_answer_for_one_person_is_not_shown_to_the_next_one_in_the_same_tab(
    screen: Screen, slow: None, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    async def checked(*_: object) -> wallets.Verdict:
        screen.looks += 1
        await screen.goes_on.wait()
        return wallets.Verdict(success=False, message="Not found yet.", again=True)

    async def counted(*_: object) -> ReachView:
        return ReachView(1, "done", 1.0, 2, 1, (), None)

    monkeypatch.setattr(wallets, "check_again", checked)
    monkeypatch.setattr(reach_service, "begin", preview.plan)
    monkeypatch.setattr(reach_service, "get", counted)
    monkeypatch.setattr(reach, "transaction", invite.transaction)
    root = rx.State()
    root._update_router_vars({"headers": {}, "pathname": "/verify", "asPath": "/verify"}, {})
    _, start = await _asks(root, kind, "ada")
    task = asyncio.create_task(start())
    await until(lambda: screen.looks > 0)
    root.reset()  # as when somebody else signs in
    state, _ = await _asks(root, kind, "bob")
    before = state.dict()
    screen.open = False
    screen.goes_on.set()
    await until(task.done)
    task.result()
    assert state.dict() == before
