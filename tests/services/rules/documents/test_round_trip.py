"""A rule keeps its meaning when it is stored, renamed, exported and imported again, whatever its conditions are."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from models import Rule
from services.core.errors import FieldRefused
from services.rules import draft as rule_draft
from services.rules import rule_rows
from services.rules.documents import json_documents, own_format
from services.rules.documents.entry import ParsedRule
from services.rules.draft import RuleDraft, check, expression_of
from services.rules.expression import parse, parse_stored, to_document

ADDRESS, MINT = "0x" + "Ab" * 20, "CJk8TvAXcq1cvC85M9aMQCxPMkTCSuWN5HsFEgAjh4ut"
AMOUNTS = st.decimals(0, 10**9, allow_nan=False, allow_infinity=False).map(lambda one: format(one, "f"))
TEXTS = st.text(max_size=8) | st.sampled_from(["5..10", ">=5", "<3", "< 3 hearts", "≥ 7", "5 .. 9", "007", "ſ"])
TRAITS = st.fixed_dictionaries({"type": TEXTS, "value": TEXTS})
RANGES = st.tuples(st.integers(0, 50), st.integers(50, 2**256)).map(lambda ends: f"{ends[0]}-{ends[1]}")
IDS = st.integers(0, 2**256).map(str) | RANGES


def leaf(kind: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    place = {"type": st.just(kind), "chain": st.just("base"), "contract": st.just(ADDRESS.lower())}
    counts = {"minTokens": st.integers(0, 9), "maxTokens": st.integers(0, 2**31)}
    return st.fixed_dictionaries({**place, **fields}, optional=counts if kind in {"basic", "trait", "token_id"} else {})


LEAVES = st.one_of(
    leaf("basic"),
    leaf("trait", traits=st.lists(TRAITS, min_size=1, max_size=3)),
    leaf("token_id", tokenIds=st.lists(IDS, min_size=1, max_size=4)),
    leaf("token_id", chain=st.just("solana"), contract=st.just(MINT), tokenIds=st.just([MINT])),
    leaf("any_nft", contract=st.just("any")),
    leaf("token", min=AMOUNTS, decimals=st.sampled_from([0, 6, 30])),
    leaf("token", contract=st.just("native"), max=st.integers(0, 10**80)),
    leaf(
        "call", function=st.just("stakedOf(address) view returns (int256)"), value=st.integers(-(10**80), 10**80),
        compare=st.sampled_from([">=", "<=", "="]),
    ),
    st.just({"type": "any_wallet", "family": "solana"}),
)  # fmt: skip
GROUPS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.fixed_dictionaries({"all": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"any": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"not": inner}),
        st.lists(inner, min_size=2, max_size=3).map(lambda of: {"atLeast": {"n": 2, "of": of}}),
    ),
    max_leaves=4,
)


@given(GROUPS)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_a_rule_means_the_same_stored_renamed_and_imported(
    monkeypatch: pytest.MonkeyPatch, document: dict[str, Any]
) -> None:
    monkeypatch.setattr(rule_draft, "chain_refusal", lambda chain: None)
    draft = RuleDraft("A rule", "", "", "basic", "7", 1, expression=document)
    try:
        tree = expression_of(check(draft))
    except FieldRefused:
        return
    stored = to_document(tree)
    assert parse(stored) == parse_stored(stored) == tree
    rule = Rule(
        server_id=1, name="A rule", role_id="7", role_name="Role", verification_type="", contract_address="",
        blockchain="", created_by="0",
    )  # fmt: skip
    rule_rows.set_expression(rule, tree)
    renamed = rule_rows._changed(rule_rows._draft_of(rule), {"ruleName": "Another name"})
    assert expression_of(check(renamed)) == tree
    fields = {"ruleName": "A rule", "roleId": "7", "expression": stored, "removal": {"mode": "grace", "hours": 3}}
    (found,) = own_format.read(await json_documents.read(json.dumps(own_format.written([fields], {}))), "1")
    assert isinstance(found, ParsedRule)
    assert (found.removal_mode, found.removal_hours, found.notes) == ("grace", 3, ())
    assert expression_of(check(replace(draft, expression=found.expression))) == tree
