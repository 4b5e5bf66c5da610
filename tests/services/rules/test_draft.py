"""What the rule form accepts: the messages in their order, one form for every condition, and the automatic names."""

from dataclasses import replace
from typing import Any

import pytest

from gateways.chains.catalogue import CHAINS
from locales import speaking
from services.core.addresses import AddressRefused, parse_evm
from services.core.errors import FieldRefused
from services.rules import draft as rule_draft
from services.rules.draft import LONGEST_NAME, RuleDraft, check, expression_of
from services.rules.expression import AtLeast, Not, Requirement, requirements
from services.rules.types import token_ids
from services.rules.wording import automatic_name, composed_name

LOWER = "0x" + "aa" * 20
GOOD = RuleDraft(
    rule_name="Cats", contract_address=LOWER, blockchain="base", verification_type="basic", role_id="7", server_id=1
)

VIEW = {"function": "staked(address) view returns (uint256)", "args": ["{wallet}"], "compare": ">=", "value": "1"}


@pytest.fixture(autouse=True)
def every_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    """A deployment that serves every chain, whatever this machine's configuration is."""
    monkeypatch.setattr(rule_draft, "chain_refusal", lambda chain: None)


def refusal(draft: RuleDraft) -> FieldRefused:
    with pytest.raises(FieldRefused) as refused:
        expression_of(check(draft))
    return refused.value


def leaf(**fields: Any) -> dict[str, Any]:
    return {"type": "basic", "chain": "base", "contract": LOWER, "minTokens": 1} | fields


def test_the_first_missing_field_is_named_in_the_order_of_the_form() -> None:
    nothing = RuleDraft(
        rule_name=" ", contract_address=" ", blockchain="", verification_type="trait", role_id="", server_id=1,
        min_tokens=0,
    )  # fmt: skip
    draft = nothing
    for message, mended in (
        ("Rule name is required", {"rule_name": "Cats"}),
        ("Blockchain is required", {"blockchain": "base"}),
        ("Role is required", {"role_id": "7"}),
        ("Minimum tokens must be at least 1", {"min_tokens": 1}),
        ("Contract address is required", {"contract_address": LOWER}),
        ("Trait type and value are required for trait verification", {"trait_type": "Fur", "trait_value": " Gold "}),
    ):
        assert refusal(draft).message == message
        draft = replace(draft, **mended)
    assert expression_of(check(draft)) == Requirement("trait", "base", LOWER, 1, (("Fur", "Gold"),))


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("  Cool\n Cats\t", "Cool Cats"),
        ("Cool \u202eCats\u2066\u200b", "Cool Cats"),
        ("Family \U0001f468\u200d\U0001f469", "Family \U0001f468\u200d\U0001f469"),
    ],
)
def test_a_rules_name_is_one_line_without_what_is_invisible(given: str, kept: str) -> None:
    assert check(replace(GOOD, rule_name=given)).rule_name == kept
    with pytest.raises(FieldRefused, match="Rule name is required"):
        check(replace(GOOD, rule_name="\u202e\n\u200d"))
    with pytest.raises(FieldRefused, match="at most 400 characters"):
        check(replace(GOOD, rule_name="Cats" + "\u200b" * 4 * LONGEST_NAME))


@pytest.mark.parametrize("name", ["\u3164", "\uffa0\u115f\u1160", "\u2800 \u3164", "\ufe0f \u034f"])
def test_a_rules_name_is_more_than_characters_that_nobody_sees(name: str) -> None:
    with pytest.raises(FieldRefused, match="Rule name is required"):
        check(replace(GOOD, rule_name=name))


def test_a_trait_has_nothing_invisible_as_those_that_it_is_compared_with() -> None:
    draft = replace(GOOD, verification_type="trait", trait_type="Fu\u200br", trait_value="\u202eGold")
    assert expression_of(check(draft)) == Requirement("trait", "base", LOWER, 1, (("Fur", "Gold"),))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"verification_type": "token_id"}, "At least one token ID is required for token ID verification"),
        ({"verification_type": "token_id", "token_ids": (" ", ",")}, "At least one token ID is required"),
        ({"verification_type": "token_id", "token_ids": ("9-1",)}, "runs backwards"),
        ({"verification_type": "trait", "trait_type": "Fur"}, "Trait type and value are required"),
        ({"verification_type": "trait", "trait_type": "x" * 201, "trait_value": "y"}, "at most 200 characters"),
        ({"verification_type": "trait", "trait_type": "Fur", "trait_value": ">= gold"}, "at least or at most a number"),
        ({"verification_type": "trait", "trait_type": "Fur", "trait_value": "a\nb"}, "no line breaks"),
        ({"verification_type": "trait", "trait_type": "Fu\x1br", "trait_value": "a"}, "no line breaks"),
        ({"verification_type": "trait", "trait_type": "Fur", "trait_value": "a\u2028b"}, "no line breaks"),
        ({"verification_type": "trait", "trait_type": "Rank", "trait_value": "10..5"}, "first: 5..10."),
        ({"verification_type": "trait", "trait_type": "Rank", "trait_value": "1e3..5"}, "first: 5..1e3."),
        ({"verification_type": "trait", "trait_type": "Rank", "trait_value": "0...5"}, "0...5 is not clear: write"),
        ({"verification_type": "trait", "trait_type": "Rank", "trait_value": ".5...7"}, ".5...7 is not clear: write"),
        ({"verification_type": "trait", "trait_type": "Rank", "trait_value": "1...5"}, "dots, like 5..10 or 0..0.5."),
        ({"verification_type": "trait", "trait_type": "Rank", "trait_value": "=>5"}, "like >=10 or <=5."),
        ({"verification_type": "trait", "trait_type": "Rank", "trait_value": "=< 5"}, "like >=10 or <=5."),
        ({"verification_type": "gold"}, "The rule type must be one of"),
        ({"verification_type": "call", "contract_address": " "}, "Contract address is required"),
        ({"min_tokens": True}, "Minimum tokens must be at least 1"),
        ({"min_tokens": "3"}, "Minimum tokens must be a whole number"),
        ({"min_tokens": 2**31}, "The number of tokens is at most 2147483647."),
        ({"max_tokens": 2**31}, "The number of tokens is at most 2147483647."),
        ({"blockchain": "bitcoin"}, "bitcoin is not one of the chains"),
        ({"contract_address": "0x12"}, "has 42 characters"),
        ({"blockchain": "solana"}, "On Solana a collection is named by its address"),
        ({"blockchain": "solana", "verification_type": "call", "details": VIEW}, "A view call needs an EVM chain"),
        ({"removal_mode": "later"}, "Removal is either at once"),
        ({"removal_hours": -1}, "whole number of hours"),
        ({"rule_name": "x" * 401}, "at most 400 characters"),
        ({"role_color": "red"}, "six hexadecimal digits"),
        ({"role_color": "#12345"}, "six hexadecimal digits"),
    ],
)
def test_what_cannot_be_taken_says_why(fields: dict[str, Any], message: str) -> None:
    assert message in refusal(replace(GOOD, **fields)).message


def test_a_condition_keeps_only_what_its_type_asks_for() -> None:
    full = replace(GOOD, trait_type="Fur", trait_value="Gold", token_ids=("1,2",))
    shouted = replace(full, contract_address=LOWER.upper().replace("X", "x"))
    assert expression_of(check(shouted)) == Requirement("basic", "base", LOWER)
    ids = replace(full, verification_type="token_id", token_ids=("1, 02", "100-200"))
    assert expression_of(check(ids)) == Requirement("token_id", "base", LOWER, token_ids=("1", "2", "100-200"))
    # One token of these is enough, so a rule that asks for more would say something else than it does.
    assert expression_of(check(replace(ids, min_tokens=2))) == expression_of(check(ids))
    several = replace(GOOD, expression=leaf(type="any_nft", contract="any", minTokens=2))
    assert expression_of(check(several)) == Requirement("any_nft", "base", "any", 1)
    nothing = replace(GOOD, expression=leaf(type="any_nft", contract="any", minTokens=0, maxTokens=0))
    assert expression_of(check(nothing)) == Requirement("any_nft", "base", "any", 0, max_tokens=0)
    anything = check(replace(full, verification_type="any_nft", contract_address=""))
    assert anything.contract_address == "any"
    assert expression_of(anything) == Requirement("any_nft", "base", "any")


def test_an_expression_goes_before_the_flat_fields_and_they_echo_its_first_condition() -> None:
    tree = {"all": [leaf(minTokens=3), {"not": leaf(type="token_id", tokenIds=["5-5"])}, {"any": [leaf(), leaf()]}]}
    draft = check(replace(GOOD, contract_address="", blockchain="", verification_type="", expression=tree))
    assert (draft.contract_address, draft.blockchain, draft.min_tokens) == (LOWER, "base", 3)
    found = expression_of(draft)
    assert isinstance(found, AtLeast)
    assert found.of[1] == Not(Requirement("token_id", "base", LOWER, token_ids=("5",)))


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ({"all": []}, "at least one condition"),
        ({"all": [leaf(), leaf(type="trait")]}, "Trait type and value are required"),
        ({"all": [leaf(), leaf(type="token_id")]}, "At least one token ID is required"),
        ({"all": [leaf(), leaf(contract="0x1")]}, "has 42 characters"),
        ({"any": [leaf(), leaf(minTokens=2**31)]}, "The number of tokens is at most 2147483647."),
        ({"not": {"not": {"not": {"not": leaf()}}}}, "at most 4 levels"),
        ({"all": [leaf() for _ in range(41)]}, "at most 40 conditions"),
    ],
)
def test_every_condition_of_an_expression_is_checked(expression: dict[str, Any], message: str) -> None:
    assert message in refusal(replace(GOOD, expression=expression)).message


@pytest.mark.parametrize(
    ("condition", "field"),
    [
        (leaf(trait={"type": "Fur", "value": "Gold"}), "trait"),
        (leaf(traits=[{"type": "Fur", "value": "Gold"}, {"type": "Hat", "value": "None"}]), "traits"),
        (leaf(tokenIds=["5"]), "tokenIds"),
        (leaf(type="trait", trait={"type": "Fur", "value": "Gold"}, tokenIds=["5"]), "tokenIds"),
        (leaf(type="any_nft"), "contract"),
        (leaf(type="token", min="1", maxTokens=5), "maxTokens"),
        (leaf(type="call", **VIEW, maxTokens=5), "maxTokens"),
    ],
)
def test_an_expression_has_no_field_that_its_type_would_leave_out(condition: dict[str, Any], field: str) -> None:
    for expression in (condition, {"all": [leaf(), {"not": condition}]}):
        refused = refusal(replace(GOOD, expression=expression))
        assert (refused.field, refused.message) == (field, f"This condition has no field {field}.")


@pytest.mark.parametrize(
    "condition",
    [
        leaf(trait={"type": "", "value": " "}),
        leaf(traits=[{"type": "", "value": ""}], tokenIds=[]),
        leaf(tokenIds=["", " "], trait=None, maxTokens=None),
        leaf(type="any_nft", contract=" any "),
        leaf(type="any_nft", contract=" "),
    ],
)
def test_an_expression_may_have_empty_fields_that_its_type_does_not_use(condition: dict[str, Any]) -> None:
    kind = condition["type"]
    plain = leaf() if kind == "basic" else leaf(type=kind, contract="any")
    draft, expected = (check(replace(GOOD, expression=one)) for one in (condition, plain))
    assert expression_of(draft) == expression_of(expected)


def test_a_type_or_a_chain_without_a_source_is_refused_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_draft, "chain_refusal", lambda chain: f"No node for {chain}.")
    assert refusal(GOOD).message == "No node for base."
    known, newer = ({"type": kind, "chain": "base", "contract": LOWER, "minTokens": 1} for kind in ("basic", "staked"))
    monkeypatch.setattr(rule_draft, "chain_refusal", lambda chain: None)
    both = replace(GOOD, expression={"all": [known, newer]})
    assert refusal(both).message == "Rules of the type staked are not available here."


@pytest.mark.parametrize(
    ("kind", "fields", "name"),
    [
        ("basic", {}, "Cool Cats"),
        ("trait", {"trait_type": "Fur", "trait_value": "Gold"}, "Cool Cats (Trait) - Fur: Gold"),
        ("trait", {"trait_type": "Fur"}, "Cool Cats (Trait) - Fur"),
        ("trait", {}, "Cool Cats (Trait-Based)"),
        ("token_id", {"ids": ["1", "2", "3", "4"]}, "Cool Cats (Token ID) - #1, 2, 3..."),
        ("token_id", {"ids": ["1", "2", "100-200"]}, "Cool Cats (Token ID) - #1, 2, 100-200"),
        ("token_id", {"ids": ["9"]}, "Cool Cats (Token ID) - #9"),
        ("token_id", {}, "Cool Cats (Token ID)"),
    ],
)
def test_automatic_names(kind: str, fields: dict[str, Any], name: str) -> None:
    assert automatic_name(kind, "apechain", "Cool Cats", **fields) == name
    assert automatic_name(kind, "apechain", "", **fields) == ""
    assert automatic_name("any_nft", "apechain", None) == "Any NFT on Apechain"


def test_a_rule_on_a_chain_of_a_file_has_the_title_from_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CHAINS, "ninth", replace(CHAINS["base"], key="ninth", title="zkNinth Era"))
    assert automatic_name("any_nft", "ninth", None) == "Any NFT on zkNinth Era"


def test_the_name_of_several_conditions_is_made_of_theirs() -> None:
    assert composed_name(["Cats"], 1) == "Cats"
    assert composed_name(["Cats", "Foxes"], 2) == "Cats and Foxes"
    assert composed_name(["Cats", "Foxes", "Owls"], 1) == "Cats, Foxes or Owls"
    assert composed_name(["Cats", "Foxes", "Owls", "Eels", "Ants"], 5) == "Cats, Foxes, Owls and 2 more"
    assert composed_name(["Cats", "Foxes", "Owls", "Eels"], 2) == "At least 2 of: Cats, Foxes, Owls, 1 more"
    assert composed_name(["Cats", "Foxes"], 0) == "None of: Cats, Foxes"
    assert composed_name(["Cats"], 0) == "None of: Cats"
    assert composed_name(["Cats", ""], 2) == ""
    assert composed_name([], 0) == ""


def test_the_longest_name_fits() -> None:
    ids = [str(2**256 - 1 - number) for number in range(3)]
    name = automatic_name("token_id", "base", "C" * 500, ids=ids)
    assert check(replace(GOOD, rule_name=name)).rule_name == name
    assert all(one.contract == LOWER for one in requirements(expression_of(GOOD)))


def test_a_condition_that_was_checked_is_not_checked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    normal, parsed = token_ids.normal, list[int]()
    monkeypatch.setattr(token_ids, "normal", lambda ids, chain: parsed.append(len(ids)) or normal(ids, chain))
    ids = tuple(str(3 * number + 7) for number in range(499))
    good = replace(GOOD, verification_type="token_id", token_ids=ids)
    bad = replace(GOOD, verification_type="token_id", token_ids=(*ids, "gold"))
    for _ in range(3):
        assert len(requirements_of(good)[0].token_ids) == 499
        assert "gold is not a token ID" in refusal(bad).message
    assert parsed == [499, 500]


def test_each_person_reads_in_their_own_language_why_a_condition_is_refused() -> None:
    bad = replace(GOOD, contract_address="0x1234")
    said = dict[str, str]()
    for tongue in ("ja", "en", "es", "ja"):
        with speaking(tongue):
            said[tongue] = refusal(bad).message
            with pytest.raises(AddressRefused) as fresh:
                parse_evm("0x1234")
        assert said[tongue] == str(fresh.value)
    assert len(set(said.values())) == 3


def requirements_of(draft: RuleDraft) -> list[Requirement]:
    return list(requirements(expression_of(check(draft))))
