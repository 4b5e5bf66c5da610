"""What the rule form reads in the background while the database does not answer: it says so, and waits no longer."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from models import transaction
from services.collections import collections
from services.collections.census import reach
from services.engine.previews import try_address
from services.engine.previews.proposals import NewRule
from state.core import gate, watchers
from state.rule_form import preview
from state.rule_form.condition_fields import FAILED
from state.rule_form.preview import RulePreviewState
from state.rule_form.reach import ReachState
from state.rule_form.rule_form import RuleFormState
from state.rule_form.try_address import ADDRESS_INPUT, TrialState
from tests.jobs.town import STRANGER, Town, a_town
from tests.state.conftest import Beside, Tab
from tests.state.towns import form as form

AWAY = OperationalError("SELECT", {}, Exception("the server closed the connection"))
SAID = "The database does not answer right now. Please try again in a few seconds."


async def away(*_: object, **__: object) -> Any:
    raise AWAY


@pytest.fixture
async def town(discord: None, sandbox_url: str) -> AsyncIterator[Town]:
    async with a_town(sandbox_url, "ada") as made:
        yield made


@pytest.fixture
async def tab(form: Tab) -> Tab:
    """The tab with the form filled in, and the collection's name."""
    rule = await form.state(RuleFormState)
    rule.collection = "Cats"
    rule._changed()
    return form


@pytest.mark.parametrize(
    ("kind", "module", "name"), [(RulePreviewState, preview, "plan"), (TrialState, try_address, "plan")]
)
@pytest.mark.parametrize("place", ["the session", "the answer"])
async def test_the_form_says_so_and_can_ask_again(
    tab: Tab, monkeypatch: pytest.MonkeyPatch, kind: Any, module: Any, name: str, place: str
) -> None:
    state: Any = await tab.state(kind)
    if kind is RulePreviewState:
        state._ask(NewRule((await tab.state(RuleFormState))._draft(0)))
    else:
        await tab.run(state.try_address({ADDRESS_INPUT: STRANGER}))
    assert state.busy
    handler = kind.event_handlers["watch"].fn(Beside(state))
    if place == "the answer":
        monkeypatch.setattr(module, name, away)
    else:
        answered = iter([True])

        async def once(asked: Any) -> Any:
            if next(answered, False):
                async with transaction() as db:
                    return await gate.sessions.actor_of(db, str(gate.handshake_session_id(asked)))
            raise AWAY

        monkeypatch.setattr(gate, "actor_of", once)
        monkeypatch.setattr(watchers, "actor_of", once)
    await handler
    assert (state.busy, state.fault) == (False, SAID)


async def test_traits_that_cannot_be_read_are_typed(tab: Tab, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = await tab.state(RuleFormState)
    monkeypatch.setattr(collections, "trait_types", away)
    await tab.run(rule.choose_type(rule.open, "trait"))
    assert rule.types_state == FAILED
    monkeypatch.setattr(collections, "trait_values", away)
    rule.trait_types = ["Fur"]
    await tab.run(rule.choose_trait_type(rule.open, "Fur"))
    assert rule.values_state == FAILED


async def test_a_count_that_cannot_begin_says_so(tab: Tab, monkeypatch: pytest.MonkeyPatch) -> None:
    state = await tab.state(ReachState)
    await tab.run(state.count())
    monkeypatch.setattr(reach, "begin", away)
    await tab.run(ReachState.event_handlers["watch"].fn(Beside(state)))
    assert (state.busy, state.fault) == (False, SAID)
