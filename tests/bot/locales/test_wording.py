"""Rules, decisions and times in another language: nothing in them stays English."""

import re
from dataclasses import replace
from datetime import timedelta

import pytest

from gateways.transport.errors import ProviderDown
from locales import LANGUAGES, speaking
from models import now
from services.core.answer import Answer
from services.core.errors import (
    MemberNotFound,
    NotConnected,
    QuestionTimedOut,
    RuleNotFound,
    ServerNotFound,
    WalletNotFound,
    unavailable,
)
from services.core.relative_times import ago, in_time, length
from services.holdings import requirement_view
from services.holdings.evaluate import Reading
from services.rules.expression import AtLeast, Expression, Not, Requirement
from services.rules.types.any_wallet import AnyWallet
from services.rules.types.coin import CoinAmount
from services.rules.types.view_call import ViewCall
from services.rules.wording import in_lines, in_words

ENGLISH_WORD = re.compile(r"[a-z]{2,}")
CONTRACT = "0x" + "11" * 20
NAMES = {("base", CONTRACT): "猫"}
ONE = Requirement("basic", "base", CONTRACT, 1)
LIMITS = ((0, 0), (1, 1), (2, 2), (0, 5), (1, 5), (2, 5))
TRAITS = ("金", ">=10", "<3", "1..5", "> 7", "≤5")
LEAVES = (
    ONE,
    replace(ONE, min_tokens=3),
    *(replace(ONE, min_tokens=least, max_tokens=most) for least, most in LIMITS),
    *(Requirement("trait", "base", CONTRACT, 1, (("色", value),)) for value in TRAITS),
    *(Requirement("token_id", "base", CONTRACT, token_ids=ids) for ids in (("5",), ("5", "7-9"), tuple("123456789"))),
    Requirement("token_id", "base", CONTRACT, 2, token_ids=("1", "2")),
    Requirement("token_id", "base", CONTRACT, 0, token_ids=("1", "2"), max_tokens=1),
)
TREES: tuple[Expression, ...] = (
    AtLeast(1, LEAVES[:2]),
    AtLeast(2, LEAVES[:2]),
    AtLeast(2, LEAVES[:3]),
    AtLeast(2, (ONE, AtLeast(1, LEAVES[1:3]))),
)


def shown(words: str) -> str:
    """Return the text without the names of chains."""
    return words.replace("Base", "")


@pytest.mark.parametrize("tree", [*LEAVES, *TREES])
def test_no_english_is_left_in_a_rule_or_its_opposite(tree: Expression) -> None:
    english = in_words(tree, NAMES)
    with speaking("ja"):
        for each in (tree, Not(tree)):
            told = [in_words(each, NAMES), *(line.text for line in in_lines(each, NAMES))]
            assert [words for words in told if ENGLISH_WORD.search(shown(words))] == []
    assert in_words(tree, NAMES) == english


@pytest.mark.parametrize(
    ("least", "most"), [("1", None), (None, "5"), ("2", "5"), ("3", "3"), ("0", "0"), (None, None)]
)
def test_no_english_is_left_in_an_amount_of_a_coin(least: str | None, most: str | None) -> None:
    coin = CoinAmount(least=least, most=most, decimals=2)
    with speaking("ja"):
        assert not ENGLISH_WORD.search(coin.words("円") + coin.words("円", holds=False))
        assert not ENGLISH_WORD.search(AnyWallet("").words("") + AnyWallet("").words("", holds=False))


@pytest.mark.parametrize("language", LANGUAGES)
def test_times_and_errors_are_said_in_every_language(language: str) -> None:
    moment = now()
    faults = [unavailable(ProviderDown("X", "timeout")), ServerNotFound(), WalletNotFound(), NotConnected()]
    faults += [QuestionTimedOut(), RuleNotFound(), MemberNotFound()]
    english = [fault.message for fault in faults]
    with speaking(language):
        said = [length(seconds) for seconds in (0, 1, 60, 7_200, 200_000)]
        said += [in_time(seconds) for seconds in (1, 30, 600)]
        said += [ago(moment - timedelta(days=days), moment) for days in (0, 2, 400)]
        assert [text for text in said if "{" in text] == []
        assert len(set(said)) == len(said)
        faults = [unavailable(ProviderDown("X", "timeout")), ServerNotFound(), WalletNotFound(), NotConnected()]
        faults += [QuestionTimedOut(), RuleNotFound(), MemberNotFound()]
        told = [fault.message for fault in faults]
    if language == "en":
        assert told == english
    else:
        assert [text for text in told if text in english] == []


def test_a_stored_reason_is_said_in_the_readers_language() -> None:
    reading = Reading(ONE, Answer.UNKNOWN, None, reason="not read yet")
    with speaking("ja"):
        view = requirement_view.view_of_reading(reading, NAMES)
        assert (view.reason, view.amounts[1]) == ("まだ読み取っていません", "不明")
    assert requirement_view.view_of_reading(reading, NAMES).reason == "not read yet"


def test_amounts_are_said_in_the_readers_language_and_stored_in_one() -> None:
    true = Requirement(
        "call", "base", CONTRACT, details=ViewCall("f(address) view returns (bool)", compare="=", value="true")
    )
    least = Requirement(
        "call", "base", CONTRACT, details=ViewCall("f(address) view returns (uint256)", compare=">=", value="1")
    )
    coin = Requirement("token", "base", CONTRACT, details=CoinAmount("1000.5", None, 6))
    assert [true.spoken(1), true.spoken(0), least.spoken(1234), coin.spoken(1_500_000)] == ["yes", "no", "1,234", "1.5"]
    with speaking("es"):
        assert [true.spoken(1), true.spoken(0), least.spoken(1234), coin.spoken(1_500_000)] == [
            "sí",
            "no",
            "1.234",
            "1,5",
        ]
        assert [true.shown(1), least.shown(1234), coin.shown(1_500_000)] == ["yes", "1,234", "1.5"]
        assert "1.000,5" in in_words(coin, NAMES)
