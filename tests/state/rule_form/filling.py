"""A newly opened rule form, and conditions to fill in."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import reflex as rx

from services.core.actors import Actor
from services.rules import draft as rule_draft
from services.rules.expression import Requirement
from state.core import gate
from state.rule_form.condition_draft import ConditionDraft
from state.rule_form.rule_form import RuleFormState

CATS, FOXES, OWLS = (f"0x{number:040x}" for number in (1, 2, 3))
NAMES = {("base", CATS): "Cats", ("polygon", FOXES): "Foxes", ("base", OWLS): "Owls"}


async def somebody(state: object) -> Actor:
    """The person whose session it is."""
    return Actor(1, "1", "ada")


@pytest.fixture
async def form(monkeypatch: pytest.MonkeyPatch) -> RuleFormState:
    """A newly opened form, with every chain in use."""
    monkeypatch.setattr(rule_draft, "chain_refusal", lambda chain: None)
    monkeypatch.setattr(gate, "actor_of", somebody)
    found = await rx.State().get_state(RuleFormState)
    found._clear()
    return found


def fill(form: RuleFormState, contract: str, chain: str = "base", **fields: Any) -> None:
    """Set what typing and the lookup leave in the open condition."""
    form._fill_in(ConditionDraft(contract=contract, chain=chain, collection=NAMES[chain, contract], **fields))
    form._changed()


def leaf(contract: str, chain: str = "base", **fields: Any) -> Requirement:
    return Requirement(fields.pop("type", "basic"), chain, contract, **fields)


async def drained(handler: AsyncIterator[object]) -> None:
    """Run a handler to its end."""
    async for _ in handler:
        pass
