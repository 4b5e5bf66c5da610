"""Requirements evaluated on vaults: a member's share of a balance, which stays unknown if part of it is unknown."""

import pytest

from gateways.chains.token_sheet import TokenSheet
from services.core.answer import Answer
from services.holdings.evaluate import Answers, Reading, read
from services.holdings.wallet_shares import Delegated, Stake, Vault
from services.rules.expression import Requirement
from services.rules.types.coin import CoinAmount
from tests.services.holdings.test_evaluate import PLACES, balances, tokens

YES, NO, UNKNOWN = Answer.YES, Answer.NO, Answer.UNKNOWN
CATS, HOT, VAULT, _ = PLACES["base"]
OWNERS = frozenset({HOT, VAULT})
THEIRS_FIRST = (Stake(False, CATS, "1"), Stake(True, delegate=HOT))
MINE_ALONE = (Stake(True, CATS, "1", delegate=HOT),)


def held(
    balance: int | None,
    named: TokenSheet | str | None,
    *stakes: Stake,
    doubts: dict[str, str] | None = None,
    least: int = 1,
) -> Reading:
    """Return the reading of a member without own tokens, and with a vault that has this balance and these claims."""
    answers = Answers(OWNERS, sheet=balances("base", {HOT: 0, VAULT: balance}))
    if named is not None:
        answers.tokens[CATS, ("1",)] = named
    delegated = Delegated((Vault("base", VAULT, stakes),) if stakes else (), doubts or {})
    return read(Requirement("basic", "base", CATS, least), [("evm", HOT)], answers, delegated)


@pytest.mark.parametrize(
    ("balance", "named", "answer", "amount"),
    [
        (3, tokens("base", {VAULT: {"1": 1}}), YES, 2),
        (3, tokens("base", {}), YES, 3),
        (1, tokens("base", {VAULT: {"1": 1}}), NO, 0),
        (1, tokens("base", {}, {VAULT: "no answer"}), UNKNOWN, 0),
        (1, "no node answered", UNKNOWN, 0),
        (1, None, UNKNOWN, 0),
        (None, tokens("base", {}), UNKNOWN, 0),
        (0, tokens("base", {}), NO, 0),
    ],
)
def test_what_somebody_elses_claim_leaves_of_a_balance(
    balance: int | None, named: TokenSheet | str | None, answer: Answer, amount: int
) -> None:
    found = held(balance, named, *THEIRS_FIRST)
    assert (found.answer, found.held) == (answer, amount)


@pytest.mark.parametrize(
    ("named", "answer"),
    [
        (tokens("base", {VAULT: {"1": 1}}), YES),
        (tokens("base", {}), NO),
        (tokens("base", {}, {VAULT: "no answer"}), UNKNOWN),
        (tokens("base", {VAULT: {"1": 1}}, {VAULT: "no answer"}), YES),
    ],
)
def test_a_claim_on_one_token_needs_no_balance(named: TokenSheet, answer: Answer) -> None:
    assert held(None, named, *MINE_ALONE).answer is answer


def test_vaults_that_are_not_known_leave_no_no_and_take_no_yes() -> None:
    doubts = {"base": "delegations: no answer"}
    assert (held(0, None).answer, held(0, None, doubts=doubts).answer) == (NO, UNKNOWN)
    whole = Stake(True, delegate=HOT)
    assert held(2, None, whole, doubts=doubts).answer is YES
    assert held(2, None, whole, doubts=doubts, least=3).answer is UNKNOWN
    assert held(0, None, doubts={"polygon": "elsewhere"}).answer is NO


def test_a_vault_that_was_not_asked_about_is_unknown() -> None:
    answers = Answers(frozenset({HOT}), sheet=balances("base", {HOT: 0}))
    delegated = Delegated((Vault("base", VAULT, (Stake(True, delegate=HOT),)),))
    asked = Requirement("basic", "base", CATS)
    assert read(asked, [("evm", HOT)], answers, delegated).answer is UNKNOWN
    assert read(asked, [("evm", HOT)], answers, None).answer is NO
    assert read(asked, [], answers, delegated).answer is NO, "who has no wallet there has nobody's vault"


WHOLE, OF_CATS = Stake(True, delegate=HOT), Stake(True, CATS, delegate=HOT)
OTHERS, OTHERS_CATS = Stake(False), Stake(False, CATS)


@pytest.mark.parametrize(
    ("stakes", "amount"),
    [
        ((WHOLE,), 5),
        ((OF_CATS,), 5),
        # A delegation of a single token means nothing for a coin.
        ((Stake(False, CATS, "1"), WHOLE), 5),
        ((Stake(True, CATS, "1", delegate=HOT),), 0),
        ((OTHERS_CATS, WHOLE), 0),
        ((OTHERS, WHOLE), 0),
    ],
)
def test_a_vaults_coins_count_for_one_member_all_or_none(stakes: tuple[Stake, ...], amount: int) -> None:
    answers = Answers(OWNERS, sheet=balances("base", {HOT: 2, VAULT: 5}))
    leaf = Requirement("token", "base", CATS, details=CoinAmount("7", None, 0))
    found = read(leaf, [("evm", HOT)], answers, Delegated((Vault("base", VAULT, stakes),)))
    assert (found.held, found.answer) == (2 + amount, YES if amount == 5 else NO)


def test_a_vault_of_which_a_coin_is_not_known_leaves_it_unknown() -> None:
    answers = Answers(OWNERS, sheet=balances("base", {HOT: 2, VAULT: None}))
    leaf = Requirement("token", "base", CATS, details=CoinAmount("7", None, 0))
    found = read(leaf, [("evm", HOT)], answers, Delegated((Vault("base", VAULT, (WHOLE,)),)))
    assert (found.held, found.answer) == (2, UNKNOWN)
