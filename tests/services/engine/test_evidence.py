"""The evidence of a decision, as the ledger and the log store it."""

from types import SimpleNamespace
from typing import cast

from services.core.answer import Answer
from services.engine.cases import Case
from services.engine.decide import Action, Decision
from services.engine.reconcile_outcome import CaseOutcome
from services.holdings.evaluate import Reading
from services.rules.expression import AtLeast, Not, Requirement
from services.rules.rule_terms import RuleTerms
from services.servers.activity_sentences import why_not
from tests.support.builders import CONTRACT

UNWANTED, WANTED = Requirement("any_nft", "base", "any"), Requirement("basic", "base", CONTRACT, 2)


def test_a_condition_that_must_not_hold_and_does_not_is_no_reason_for_a_loss() -> None:
    rule = RuleTerms(1, "role", AtLeast(2, (Not(UNWANTED), WANTED)), "active")
    case = cast(Case, cast(object, SimpleNamespace(rules=(rule,), grants=())))
    found = {1: [Reading(UNWANTED, Answer.NO, 0), Reading(WANTED, Answer.NO, 1)]}
    documents = CaseOutcome(case, [], {}, found).evidence_documents(Decision("role", Action.TAKE))
    assert [one.get("excluded", False) for one in documents] == [True, False]
    assert why_not(documents, {("base", CONTRACT): "Cats"}) == "holds 1, needs 2 of Cats on Base"
