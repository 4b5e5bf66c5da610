"""How much memory the parsed expressions of rules take in a process that reconciles for weeks."""

import json
import tracemalloc

import pytest

from models import now
from services.core.answer import Answer
from services.core.queue import Claim
from services.engine import snapshot
from services.engine.cases import Case
from services.engine.reconcile_outcome import read_all
from services.engine.snapshot import ParsedExpressions, StoredRule, terms_of
from services.rules.expression import Requirement
from tests.support.builders import address, snowflake


def expression(number: int) -> str:
    """Return the text of a distinct expression with many token ids."""
    ids = [str(number * 1_000 + one) for one in range(500)]
    return json.dumps({"type": "token_id", "chain": "base", "contract": "0x1", "minTokens": 1, "tokenIds": ids})


def test_memory_is_bounded_however_often_an_admin_saves_a_long_rule() -> None:
    most = 400_000
    parsed = ParsedExpressions(most)
    tracemalloc.start()
    try:
        for number in range(300):
            assert isinstance(parsed.of(expression(number)), Requirement)
            assert parsed.bytes <= most
        assert tracemalloc.get_traced_memory()[0] < 3 * most
    finally:
        tracemalloc.stop()


def test_nothing_else_keeps_a_rule_that_members_were_reconciled_by(monkeypatch: pytest.MonkeyPatch) -> None:
    most = 400_000
    monkeypatch.setattr(snapshot, "_expressions", ParsedExpressions(most))
    tracemalloc.start()
    try:
        for number in range(300):
            made = StoredRule(1, 1, snowflake(), expression(number), "active", "now", 0, None, now(), False, False)
            case = Case(
                Claim(1, snowflake(), 1, 0, 0), "", bot_invited=True, known=True, left=False, roles=frozenset(),
                rules=(terms_of(made),), wallets=(("evm", address()),), grants=(),
            )  # fmt: skip
            ((reading,),) = read_all(case, {}).values()
            assert reading.answer is Answer.UNKNOWN
        assert tracemalloc.get_traced_memory()[0] < 3 * most
    finally:
        tracemalloc.stop()


def test_equal_texts_are_parsed_once_and_the_least_recently_used_go_first() -> None:
    one, two, three = (expression(number) for number in (901, 902, 903))
    parsed = ParsedExpressions(5 * len(one + two + three))
    first, second = parsed.of(one), parsed.of(two)
    assert parsed.of(one) is first
    parsed.of(three)
    assert parsed.of(one) is first
    assert parsed.of(two) == second
    assert parsed.of(two) is not second
