"""The view call in the rule form: templates, its own fields, and the trial with a wallet."""

from dataclasses import replace
from typing import Any

import pytest
import reflex as rx

from gateways import Gateways
from services.core.actors import Actor
from services.core.errors import FieldRefused, HoldfastError
from services.holdings import try_call
from services.holdings.try_call import CallResult, CallTrial
from services.rules import draft as rule_draft
from services.rules.draft import expression_of
from services.rules.expression import Requirement, to_document
from services.rules.types.call_templates import TEMPLATES
from state.core import gate
from state.rule_form.condition_draft import CALLING, LIMITED, OF_COLLECTIONS, ConditionDraft, draft_of
from state.rule_form.rule_form import RuleFormState

CONTRACT, WALLET = "0x" + "c0" * 20, "0x" + "a1" * 20


async def somebody(state: object) -> Actor:
    """The person whose session it is."""
    return Actor(1, "1", "ada")


@pytest.fixture
async def form(monkeypatch: pytest.MonkeyPatch) -> RuleFormState:
    """A newly opened form, with a view call on Base."""
    monkeypatch.setattr(rule_draft, "chain_refusal", lambda chain: None)
    monkeypatch.setattr(gate, "actor_of", somebody)
    found = await rx.State().get_state(RuleFormState)
    found._clear()
    found._fill_in(ConditionDraft(type="call", chain="base", contract=CONTRACT))
    found._changed()
    return found


async def handled(form: RuleFormState, name: str, *values: Any) -> None:
    """Run a handler of the form to completion."""
    running = getattr(RuleFormState, name).fn(form, *values)
    if hasattr(running, "__aiter__"):
        async for _ in running:
            pass
    else:
        await running


def test_a_call_has_a_contract_that_is_no_collection_and_no_minimum() -> None:
    assert CALLING == ("call",)
    assert not {*OF_COLLECTIONS, *LIMITED} & set(CALLING)


@pytest.mark.parametrize("row", TEMPLATES, ids=lambda row: row.key)
async def test_a_template_fills_in_a_whole_condition(form: RuleFormState, row: Any) -> None:
    await handled(form, "choose_template", form.open, row.key)
    assert form.contract == (row.contract or CONTRACT)
    drafted = replace(form._drafted(form._filled_in(), None), rule_name="A rule", role_id="5")
    tree = expression_of(rule_draft.check(drafted))
    assert isinstance(tree, Requirement)
    assert (tree.type, tree.contract) == ("call", row.contract or CONTRACT)
    assert to_document(tree)["function"] == row.function
    assert form.rule_name


async def test_what_is_typed_becomes_the_condition_and_comes_back(form: RuleFormState) -> None:
    for name, value in (
        ("function", "stakedOf(address,uint256) view returns (uint256)"), ("args", "{wallet}\n5"), ("value", "3"),
    ):  # fmt: skip
        await handled(form, "enter_detail", form.open, name, value)
    leaf = form._filled_in().leaf
    assert leaf.details is not None
    assert leaf.details.document() == {
        "function": "stakedOf(address,uint256) view returns (uint256)", "args": ["{wallet}", "5"], "compare": ">=",
        "value": "3",
    }  # fmt: skip
    assert [line.text for line in form.lines] == [f"stakedOf(wallet, 5) of {CONTRACT[:6]}...c0c0 on Base is at least 3"]
    assert draft_of(leaf, "").leaf == leaf
    assert form.rule_name == "stakedOf(wallet, 5) ≥ 3 on Base"


@pytest.mark.usefixtures("discord")
async def test_trying_shows_the_answer_or_why_there_is_none(
    form: RuleFormState, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[CallTrial] = []
    said: list[CallResult | HoldfastError] = []

    async def allow(*_: object) -> None:
        return None

    async def run(outside: Gateways, trial: CallTrial) -> CallResult:
        asked.append(trial)
        if isinstance(answer := said.pop(), HoldfastError):
            raise answer
        return answer

    monkeypatch.setattr(try_call, "allow", allow)
    monkeypatch.setattr(try_call, "run", run)
    await handled(form, "choose_template", form.open, "balance-of-id")
    await handled(form, "enter_trial_wallet", f" {WALLET} ")
    for answer, words in (
        (CallResult("12345", None, 1_000, "Base node 1", True), "The answer is 12,345 (block 1,000)."),
        (CallResult("true", None, 1_000, "Base node 1", False), "The answer is true (block 1,000)."),
        (
            CallResult(None, "the contract reverted", 7, "Base node 1", True),
            "Unknown: the contract reverted (block 7).",
        ),
        (FieldRefused("args", "Argument 2 is wrong."), "Argument 2 is wrong."),
    ):
        said.append(answer)
        await handled(form, "try_call", form.open)
        assert (form.tried, form.trying) == (words, False)
    function = "balanceOf(address,uint256) view returns (uint256)"
    assert asked[0] == CallTrial("base", CONTRACT, function, ["{wallet}", "1"], "", WALLET)
    await handled(form, "enter_detail", form.open, "value", "7")
    assert form.tried == "Argument 2 is wrong."  # the call is the same
    await handled(form, "enter_contract", form.open, WALLET)
    assert form.tried == ""
    said.append(CallResult("1", None, 1_000, "Base node 1", True))
    await handled(form, "try_call", form.open)
    await handled(form, "enter_trial_wallet", "0x1")
    assert form.tried == ""
