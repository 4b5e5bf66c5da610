"""Collections that could not be looked up: the form says why below the field, for no more of them than it can show."""

import pytest

from services.core.errors import TooMany
from services.rules.expression import MAX_LEAVES
from services.runtime import rate_limits
from state.rule_form.condition_fields import MOST_UNREAD
from state.rule_form.rule_form import RuleFormState
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
