"""The rule form while it is filled in: names, conditions and groups, and the rule that would be sent."""

import inspect
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
import reflex as rx

from gateways.chains.catalogue import CHAINS
from services.collections import collections
from services.core.actors import Actor
from services.core.errors import CollectionView, NotFound, NotSignedIn, ProviderUnavailable
from services.rules import draft as rule_draft
from services.rules import single_source
from services.rules.draft import expression_of
from services.rules.expression import AtLeast, Not, Requirement, parse
from services.rules.limits import RoomView
from services.rules.single_source import SingleSource
from services.rules.types import token_ids
from services.rules.types.coin import CoinAmount
from services.runtime import rate_limits
from state.core import gate
from state.core.toasts import ToastState
from state.rule_form import condition_fields, tiers
from state.rule_form.chain_options import chain_options
from state.rule_form.condition_draft import ConditionDraft
from state.rule_form.conditions import ROOT, UNFILLED
from state.rule_form.rule_fault import NO_FAULT, RuleFault
from state.rule_form.rule_form import RuleFormState
from state.rule_form.tiers import LEAST, tier_control
from tests.state.conftest import SignIn, Tab
from tests.state.rule_form.filling import CATS, FOXES, OWLS, fill, leaf, somebody
from tests.state.rule_form.filling import form as form


async def test_it_begins_with_the_defaults(form: RuleFormState) -> None:
    assert (form.type, form.chain, form.min_tokens, form.token_ids) == ("basic", "ethereum", "1", [])
    assert (form.rule_name, form.composed, form.lines, form.proposal_key) == ("", False, [], "")
    assert (form.removal, form.shadow, form.takes_over, form.delegated) == ("now", False, False, False)


async def test_it_says_how_many_rules_there_may_be_and_when_none_can_be_added(form: RuleFormState) -> None:
    form._show_room(RoomView(12, 100, 31, 400, ""))
    assert form.room == "12 of 100 rules and 31 of 400 conditions of this server are in use."
    assert form.full == ""
    form._show_room(RoomView(100, 100, 131, 400, "This server has 100 rules."))
    assert form.full == "This server has 100 rules."
    form.rule_id = 7
    form._show_room(RoomView(100, 100, 131, 400, "This server has 100 rules."))
    assert form.full == "", "a rule that is there can be changed"


async def test_the_name_and_the_words_follow_every_change(form: RuleFormState) -> None:
    fill(form, CATS, type="trait")
    assert form.rule_name == "Cats (Trait-Based)"
    form.trait_type = "Level"
    await form.enter_trait_value(form.open, "10")
    assert form.rule_name == "Cats (Trait) - Level: 10"
    await form.choose_compare(form.open, ">=")
    assert form.rule_name == "Cats (Trait) - Level: >=10"
    assert [line.text for line in form.lines] == ["At least 1 token of Cats on Base with Level of at least 10"]
    await form.enter_min_tokens(form.open, 3)
    assert form.lines[0].text.startswith("At least 3 tokens")
    fill(form, CATS, type="token_id")
    assert form.rule_name == "Cats (Token ID)"
    await form.add_tokens(form.open, {"tokenEntry": "1, 2, 100-200, 7"})
    assert form.rule_name == "Cats (Token ID) - #1, 2, 100-200..."
    await form.remove_token(form.open, "100-200")
    assert form.rule_name == "Cats (Token ID) - #1, 2, 7"


async def test_an_amount_that_the_new_type_does_not_show_does_not_outlive_the_old_one(form: RuleFormState) -> None:
    fill(form, CATS)
    form.role_id = "1"
    await form.enter_max_tokens(form.open, 5)
    async for _ in form.choose_type(form.open, "any_nft"):
        pass
    assert (form.rule_name, form._first_fault()) == ("Any NFT on Base", NO_FAULT)
    async for _ in form.choose_type(form.open, "basic"):
        pass
    await form.enter_min_tokens(form.open, 0)
    for kind in ("any_nft", "token_id"):
        async for _ in form.choose_type(form.open, kind):
            pass
    await form.add_tokens(form.open, {"tokenEntry": "7"})
    assert (form.rule_name, form._first_fault()) == ("Cats (Token ID) - #7", NO_FAULT)


async def test_none_of_certain_tokens_is_asked_for_by_a_maximum_of_0(form: RuleFormState) -> None:
    fill(form, CATS, type="token_id", token_ids=("7",))
    form.role_id = "1"
    await form.enter_max_tokens(form.open, 0)
    assert (form.rule_name, form._first_fault()) == ("Cats (Token ID) - #7 (none)", NO_FAULT)
    assert expression_of(form._draft(1)) == leaf(CATS, type="token_id", token_ids=("7",), min_tokens=0, max_tokens=0)
    await form.enter_max_tokens(form.open, 2)
    assert form._draft(1).min_tokens == 1


async def test_traits_of_one_token_are_collected(form: RuleFormState) -> None:
    fill(form, CATS, type="trait", trait_type="Fur", trait_value="Gold")
    await form.add_trait(form.open)
    assert (form.trait_type, form.trait_value, form.rule_name) == ("", "", "Cats (Trait) - Fur: Gold")
    async for _ in form.choose_trait_type(form.open, "Level"):
        pass
    await form.choose_compare(form.open, "..")
    await form.enter_trait_value(form.open, "5..10")
    both = (("Fur", "Gold"), ("Level", "5..10"))
    assert form._filled_in().leaf.traits == both
    assert form.rule_name == "Cats (Trait) - Fur: Gold, Level: 5..10"
    await form.add_trait(form.open)
    await form.add_trait(form.open)
    assert [(one.kind, one.value) for one in form.more_traits] == list(both), "an empty one is not added"
    await form.remove_trait(form.open, "Fur", "Gold")
    assert form._filled_in().leaf.traits == both[1:]


async def test_a_maximum_makes_a_tier_and_a_minimum_of_zero(form: RuleFormState) -> None:
    fill(form, CATS)
    await form.choose_role("77")
    await form.enter_max_tokens(form.open, 4)
    assert form.rule_name == "Cats (1 to 4)"
    await form.enter_min_tokens(form.open, 5)
    assert form._first_fault().text == "The maximum is a whole number that is not below the minimum of 5."
    await form.enter_min_tokens(form.open, 0)
    await form.enter_max_tokens(form.open, 0)
    assert (form.rule_name, form._first_fault().text) == ("Cats (none)", "")
    await form.enter_max_tokens(form.open, None)
    assert form._first_fault().text == "Minimum tokens must be at least 1"


async def test_tiers_become_rules_that_follow_each_other(form: RuleFormState) -> None:
    fill(form, CATS)
    await form.choose_role("77")
    await form.add_tier()
    assert (form.tiers_added, form.first_of_added) == (1, tier_control(form.tiers[0].number, LEAST))
    assert form._first_fault().text == "Tier 1 needs a maximum, because tier 2 follows it."
    await form.enter_max_tokens(form.open, 4)
    assert form._first_fault().text == "Tier 2: enter whole numbers. Leave the maximum empty for no limit."
    await form.remove_tier(2)
    assert form._first_fault().text == ""
    await form.add_tier()
    await form.add_tier()
    second, third = (one.number for one in form.tiers)
    assert [(one.title, one.least) for one in form.tiers] == [("Tier 2", "5"), ("Tier 3", "")]
    await form.enter_tier(second, "most", "19")
    await form.enter_tier(second, "role", "78")
    await form.enter_tier(third, "least", "19")
    assert form._first_fault().text == "Tier 3 begins at 19, but tier 2 goes to 19."
    await form.enter_tier(third, "least", "20")
    assert form._first_fault().text == "Tier 3: choose a role."
    await form.enter_tier(third, "role", "79")
    assert form._first_fault().text == ""
    made = tiers.drafts(form._draft(5), form.tiers, "Cats")
    assert [(one.rule_name, one.min_tokens, one.max_tokens, one.role_id) for one in made] == [
        ("Cats (1 to 4)", 1, 4, "77"), ("Cats (5 to 19)", 5, 19, "78"), ("Cats (20 or more)", 20, None, "79"),
    ]  # fmt: skip
    for draft in made:
        expression_of(rule_draft.check(draft))
    for _ in range(20):
        await form.add_tier()
    assert len(form.tiers) == tiers.MOST_TIERS - 1


async def test_an_entry_that_cannot_be_taken_says_why_and_adds_nothing(form: RuleFormState) -> None:
    fill(form, CATS, type="token_id")
    await form.add_tokens(form.open, {"tokenEntry": "5"})
    assert (form.token_entry, form.token_fault) == ("5", ""), "the field is emptied"
    await form.add_tokens(form.open, {"tokenEntry": "5"})
    assert (form.token_entry, form.token_fault) == ("5", "5 is already in the list."), "the entry is put back"
    await form.add_tokens(form.open, {"tokenEntry": "9-1"})
    assert (form.token_ids, form.token_fault) == (["5"], "9-1 runs backwards. Write the smaller ID first: 1-9.")
    await form.add_tokens(form.open, {"tokenEntry": " "})
    assert (form.token_ids, form.token_fault) == (["5"], "")


async def test_what_would_be_sent_for_one_condition_is_flat(form: RuleFormState) -> None:
    fill(form, CATS, min_tokens="2")
    await form.choose_role("77")
    draft = form._draft(5)
    assert (draft.contract_address, draft.blockchain, draft.min_tokens, draft.expression) == (CATS, "base", 2, None)
    assert (draft.rule_name, draft.role_id, draft.server_id, draft.removal_hours) == ("Cats", "77", 5, 0)
    await form.choose_removal("grace")
    assert form._draft(5).removal_hours == 24
    await form.enter_grace(48)
    assert form._draft(5).removal_hours == 48
    anything = ConditionDraft(type="any_nft", chain="apechain", contract=CATS)
    form._fill_in(anything)
    form._changed()
    assert (form._draft(5).contract_address, form.rule_name) == ("any", "Any NFT on Apechain")


async def test_several_conditions_and_a_group_become_one_expression(form: RuleFormState) -> None:
    fill(form, CATS)
    await form.add_condition(ROOT)
    assert form.composed
    assert (form.contract, form.chain, form.type) == ("", "base", "basic"), "a new condition begins empty"
    assert [row.text for row in form.sections[0].rows] == ["At least 1 token of Cats on Base", UNFILLED]
    fill(form, FOXES, "polygon", min_tokens="2")
    await form.add_group()
    fill(form, OWLS)
    group = form.sections[1].number
    await form.add_condition(group)
    fill(form, CATS, type="token_id", token_ids=("5",))
    await form.negate(form.open, True)
    await form.choose_mode(ROOT, "some")
    await form.enter_least(ROOT, 2)
    assert form.rule_name == "At least 2 of: Cats, Foxes, (Owls or not Cats (Token ID) - #5)"
    tree = parse(form._draft(1).expression)
    inner = AtLeast(1, (leaf(OWLS), Not(leaf(CATS, type="token_id", token_ids=("5",)))))
    assert tree == AtLeast(2, (leaf(CATS), leaf(FOXES, "polygon", min_tokens=2), inner))
    assert [(line.depth, line.text) for line in form.lines] == [
        (0, "At least 2 of:"),
        (1, "At least 1 token of Cats on Base"),
        (1, "At least 2 tokens of Foxes on Polygon"),
        (1, "Any of:"),
        (2, "At least 1 token of Owls on Base"),
        (2, "Not token 5 of Cats on Base"),
    ]
    await form.choose_role("77")
    assert form.proposal_key != ""


async def test_a_condition_that_goes_takes_its_empty_group_with_it_and_one_always_stays(form: RuleFormState) -> None:
    fill(form, CATS)
    await form.add_group()
    fill(form, OWLS)
    await form.remove_condition(form.open)
    assert (len(form.sections), form.composed, form.contract) == (1, False, CATS)
    await form.remove_condition(form.open)
    assert (form.contract, form._draft(1).expression) == (CATS, None)


async def test_what_lacks_something_is_named_in_the_order_of_the_form(form: RuleFormState) -> None:
    assert form._first_fault() == RuleFault("Contract address is required", 1, "contractAddress")
    form.contract = CATS
    form._changed()
    # No collection was found there. The name cannot be typed: another contract can.
    assert form._first_fault() == RuleFault("Rule name is required", 1, "contractAddress")
    fill(form, CATS)
    assert form._first_fault().text == "Role is required"
    await form.choose_role("77")
    assert form._first_fault() == NO_FAULT
    await form.enter_min_tokens(form.open, None)
    assert form._first_fault().text == "Minimum tokens must be at least 1"
    await form.enter_min_tokens(form.open, 1.5)
    assert form._first_fault().text == "Minimum tokens must be a whole number"
    await form.enter_min_tokens(form.open, 1)
    await form.add_condition(ROOT)
    second = form.open
    assert form._first_fault() == RuleFault("Contract address is required", second, "contractAddress")
    fill(form, CATS, type="token_id")
    assert form._first_fault() == RuleFault(
        "At least one token ID is required for token ID verification", second, "tokenIds"
    )


async def test_a_collection_that_could_not_be_read_is_named_instead_of_the_missing_name(
    form: RuleFormState, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[CollectionView | Exception] = [
        ProviderUnavailable("OpenSea"), ProviderUnavailable("OpenSea"),
        NotFound("There is no contract."), NotFound(""), CollectionView("Cats", CATS, "base"),
    ]  # fmt: skip

    async def parse(*_: object, **__: object) -> CollectionView:
        if isinstance(answer := answers.pop(0), Exception):
            raise answer
        return answer

    monkeypatch.setattr(collections, "parse", parse)
    monkeypatch.setattr(rate_limits, "spend", nothing)
    monkeypatch.setattr(condition_fields, "transaction", nullcontext)
    await Tab.run(form.choose_chain(form.open, "base"))
    await Tab.run(form.enter_contract(form.open, CATS))
    assert form._first_fault() == RuleFault("Failed to fetch collection data. Please try again.", 1, "contractAddress")
    await form.add_condition(ROOT)
    fill(form, OWLS)
    assert form._first_fault() == RuleFault("Failed to fetch collection data. Please try again.", 1, "contractAddress")
    await form.remove_condition(form.open)
    for said in ("Failed to fetch collection data. Please try again.", "There is no contract.",
                 "Please check the URL or contract address", "Role is required"):  # fmt: skip
        await Tab.run(form.refresh_collection(form.open))
        assert form._first_fault().text == said


async def test_what_was_wrong_is_no_longer_said_once_a_field_changes(form: RuleFormState) -> None:
    for change in (
        lambda: form.choose_role("77"),
        lambda: form.enter_min_tokens(form.open, 2),
        lambda: form.add_condition(ROOT),
        lambda: form.choose_removal("grace"),
    ):
        await form._refuse("Role is required")
        await change()
        assert form.fault == ""


async def test_hostile_events_change_nothing(form: RuleFormState) -> None:
    fill(form, CATS)
    before = form._signature()
    await form.add_condition(99)
    await form.remove_condition(99)
    await form.negate(99, True)
    await form.choose_mode(ROOT, "nonsense")
    await form.choose_compare(form.open, "!")
    await form.choose_removal("never")
    assert form._signature() == before
    await form.enter_least(ROOT, -5)
    assert form.sections[0].least == "1"
    for _ in range(60):
        await form.add_condition(ROOT)
    assert len(form._slots) == 40


@pytest.mark.parametrize("typed", ["", "0x12", "not an address"])
async def test_an_address_that_goes_takes_its_name_and_its_traits_with_it(form: RuleFormState, typed: str) -> None:
    fill(form, CATS, type="trait", trait_type="Fur", trait_value="Gold")
    form.trait_types, form.trait_values = ["Fur"], ["Gold", "Ash"]
    assert form.rule_name == "Cats (Trait) - Fur: Gold"
    assert [outcome async for outcome in form._take(Actor(1, "1", "ada"), typed)] == []
    assert (form.collection, form.trait_types, form.trait_values, form.rule_name) == ("", [], [], "")


async def test_another_kind_of_trait_has_its_own_values(
    form: RuleFormState, monkeypatch: pytest.MonkeyPatch, sign_in: SignIn
) -> None:
    async def values(*asked: Any) -> list[str]:
        return {"Fur": ["Gold", "Ash"], "Level": ["7"]}[asked[-1]]

    monkeypatch.setattr(collections, "trait_values", values)
    tab, _ = await sign_in("ada")
    tab.go("/add-verification-rule")
    form = await tab.state(RuleFormState)
    form._clear()
    fill(form, CATS, type="trait")
    form.trait_types = ["Fur", "Level"]
    for kind, offered in (("Fur", ["Gold", "Ash"]), ("Level", ["7"]), ("", [])):
        await tab.run(form.choose_trait_type(form.open, kind))
        assert (form.trait_type, form.trait_values, form.trait_value) == (kind, offered, "")
        await form.enter_trait_value(form.open, "left behind")


async def test_what_cannot_be_created_is_an_error_with_its_message_or_a_general_one(form: RuleFormState) -> None:
    toasts = await form.get_state(ToastState)
    for message, told in (("Role is required", "Role is required"), ("", "Failed to create verification rule")):
        await form._refuse(message)
        assert (toasts.title, toasts.text, toasts.destructive, form.pending) == ("Error", told, True, False)


async def test_before_the_form_has_loaded_every_button_finds_one_empty_condition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gate, "actor_of", somebody)
    form = await rx.State().get_state(RuleFormState)
    await form.add_group()
    assert len(form._slots) == 2
    assert len(form._joins) == 2


async def test_a_condition_that_one_source_alone_can_tell_says_so_beside_it(
    form: RuleFormState, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = {"base": SingleSource("base", "basic", "Base has one node.", "Add one to RPC_BASE.")}
    monkeypatch.setattr(single_source, "of_condition", lambda leaf: (alone[leaf.chain],) if leaf.chain in alone else ())
    fill(form, FOXES, "polygon")
    assert form.caveat == ""
    await form.add_condition(ROOT)
    fill(form, CATS)
    assert form.caveat == "Base has one node. Add one to RPC_BASE."
    assert [row.caveat for row in form.sections[0].rows] == ["", form.caveat]


async def test_a_visitor_fills_in_nothing() -> None:
    form = await rx.State().get_state(RuleFormState)
    handlers = [name for name in RuleFormState.event_handlers if name != "setvar"]
    assert {"add_tokens", "negate", "choose_role", "think_again"} <= set(handlers)
    for name in handlers:
        handler = RuleFormState.event_handlers[name].fn
        needed = list(inspect.signature(handler).parameters)[1:]
        with pytest.raises(NotSignedIn):
            await Tab.run(handler(form, *([None] * len(needed))))
    assert not form.token_ids


async def test_an_event_checks_the_condition_that_it_changes_and_no_other(
    form: RuleFormState, monkeypatch: pytest.MonkeyPatch
) -> None:
    await form.choose_role("77")
    for place in range(7):
        fill(form, CATS, type="token_id", token_ids=tuple(str(1000 * place + 2 * one) for one in range(499)))
        await form.add_condition(ROOT)
    fill(form, CATS)
    normal, checked = token_ids.normal, list[int]()
    monkeypatch.setattr(token_ids, "normal", lambda ids, chain: checked.append(len(ids)) or normal(ids, chain))
    await form.negate(form.open, True)
    assert (checked, form._first_fault()) == ([], NO_FAULT)


async def test_a_chain_of_a_file_is_offered_after_the_others(
    form: RuleFormState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CHAINS, "ninth", replace(CHAINS["base"], key="ninth", title="Ninth Chain", form_place=0))
    assert [(one.name, one.label, one.offered) for one in chain_options()[-2:]] == [
        ("solana", "Solana", True),
        ("ninth", "Ninth Chain", True),
    ]
    await Tab.run(form.choose_type(form.open, "any_nft"))
    await Tab.run(form.choose_chain(form.open, "ninth"))
    assert (form.chain, form.rule_name) == ("ninth", "Any NFT on Ninth Chain")
    await Tab.run(form.choose_chain(form.open, "tenth"))
    assert form.chain == "ninth"


async def test_a_coin_is_looked_up_and_its_amounts_are_sent_as_they_are_typed(
    form: RuleFormState, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str]] = []

    async def coin(db: object, outside: object, given: str, chain: str) -> CollectionView:
        asked.append((given, chain))
        return CollectionView("ETH", "native", chain)

    monkeypatch.setattr(collections, "coin", coin)
    monkeypatch.setattr(rate_limits, "spend", nothing)
    monkeypatch.setattr(condition_fields, "transaction", nullcontext)
    await Tab.run(form.choose_type(form.open, "token"))
    await Tab.run(form.choose_chain(form.open, "base"))
    await Tab.run(form.enter_contract(form.open, "Native"))
    assert (asked, form.contract, form.collection) == ([("Native", "base")], "native", "ETH")
    assert form._first_fault().text != ""
    await form.enter_detail(form.open, "min", "0.5")
    assert form.rule_name == "0.5 ETH"
    assert [line.text for line in form.lines] == ["At least 0.5 of ETH on Base"]
    await form.enter_detail(form.open, "max", "2")
    (slot,) = form._slots
    assert slot.draft.leaf == Requirement("token", "base", "native", details=CoinAmount("0.5", "2"))


async def nothing(*_: object) -> None:
    """Done."""
