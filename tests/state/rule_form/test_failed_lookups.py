"""Collections that could not be looked up: the form says why below the field, for no more of them than it can show."""

import pytest

from gateways.transport.fair_turns import caller
from services.collections import collections
from services.core.errors import TooMany
from services.rules.expression import MAX_LEAVES
from services.runtime import rate_limits
from settings import settings
from state.rule_form.condition_fields import FAILED, MOST_UNREAD
from state.rule_form.rule_form import RuleFormState
from tests.state.rule_form.filling import CATS, drained, fill
from tests.state.rule_form.filling import form as form


async def test_a_form_remembers_no_more_failures_than_it_can_show(
    form: RuleFormState, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def too_often(*_: object) -> None:
        raise TooMany("Too often.", 5)

    monkeypatch.setattr(rate_limits, "spend", too_often)
    places = [(form.chain, f"0x{number:040x}") for number in range(3 * MOST_UNREAD)]
    for _chain, contract in places:
        with pytest.raises(TooMany):
            async for _ in form.enter_contract(form.open, contract):
                pass
    assert list(form._unread) == places[-MOST_UNREAD:]
    assert form.contract_fault == "Too often."
    async for _ in form.enter_contract(form.open, "0x"):
        pass
    assert form.contract_fault == ""
    assert MOST_UNREAD > MAX_LEAVES


async def test_traits_that_the_form_reads_count_as_lookups(
    product: None, form: RuleFormState, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[object, ...]] = []

    async def kinds(_db: object, _outside: object, *place: str) -> list[str]:
        asked.append((caller().tenant, *place))
        return ["Fur", "Hat"]

    async def values(_db: object, _outside: object, *place: str) -> list[str]:
        asked.append((caller().tenant, *place))
        return ["Gold"]

    monkeypatch.setattr(collections, "trait_types", kinds)
    monkeypatch.setattr(collections, "trait_values", values)
    monkeypatch.setenv("LIMIT_LOOKUPS", "4")
    settings.cache_clear()
    fill(form, CATS)
    for kind in ("Fur", "Hat", "Fur", "Hat", "Fur"):
        await drained(form.choose_type(form.open, "trait"))
        await drained(form.choose_trait_type(form.open, kind))
        await drained(form.choose_type(form.open, "basic"))
    assert len(asked) == 4
    assert {tenant for tenant, *_ in asked} == {"user:1"}
    # What cannot be listed is typed by hand.
    await drained(form.choose_type(form.open, "trait"))
    await drained(form.choose_trait_type(form.open, "Eyes"))
    assert (form.trait_type, form.types_state, len(asked)) == ("Eyes", FAILED, 4)
