"""Requirements evaluated on vaults: a member's share of a balance, which stays unknown if part of it is unknown."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import cast

import pytest

from gateways import Gateways
from gateways.chains.balance_sheet import BalanceSheet, Cells, Segment, packed
from gateways.chains.token_sheet import TokenSheet
from services.core.answer import Answer
from services.holdings import fetch
from services.holdings.evaluate import Answers, Reading, read
from services.holdings.fetch import HoldingsQuestion
from services.holdings.fetch_plan import Wants, by_chain, with_vaults
from services.holdings.wallet_shares import Delegated, Stake, Vault, WalletShare
from services.rules.expression import Requirement
from services.rules.types.coin import CoinAmount
from tests.services.holdings.test_evaluate import NOW, PLACES, balances, tokens

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
    answers = Answers(OWNERS, sheet=balances("base", {HOT: 0}))
    asked = Requirement("basic", "base", CATS)
    assert read(asked, [("evm", HOT)], answers, None).answer is NO, "where a rule counts no delegations"


def test_a_vault_that_was_not_asked_about_is_unknown() -> None:
    answers = Answers(frozenset({HOT}), sheet=balances("base", {HOT: 0}))
    delegated = Delegated((Vault("base", VAULT, (Stake(True, delegate=HOT),)),))
    asked = Requirement("basic", "base", CATS)
    assert read(asked, [("evm", HOT)], answers, delegated).answer is UNKNOWN
    assert read(asked, [("evm", HOT)], answers, None).answer is NO
    assert read(asked, [], answers, delegated).answer is NO, "who has no wallet there has nobody's vault"


def test_a_vaults_tokens_count_without_those_of_an_older_claim_if_the_vault_was_asked_about() -> None:
    leaf, said = Requirement("token_id", "base", CATS, token_ids=("1", "2")), tokens("base", {VAULT: {"1": 1, "2": 1}})
    for owners, answer, amount in ((OWNERS, YES, 1), (frozenset({HOT}), UNKNOWN, 0)):
        answers = Answers(owners, tokens={(CATS, leaf.token_ids): said})
        found = read(leaf, [("evm", HOT)], answers, Delegated((Vault("base", VAULT, THEIRS_FIRST),)))
        assert (found.answer, found.held) == (answer, amount)


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


def test_a_coin_whose_decimals_are_not_known_is_unknown() -> None:
    answers = Answers(OWNERS, sheet=balances("base", {HOT: 0}), coins=frozenset({CATS}))
    for decimals, answer in ((2, NO), (None, UNKNOWN)):
        coin = Requirement("token", "base", CATS, details=CoinAmount("1", None, decimals))
        assert read(coin, [("evm", HOT)], answers).answer is answer


COINS = "0x" + "c0" * 20
"""A contract that a stranger's vault names in a claim of the member's. It has coins and not NFTs."""
ANYTHING = Requirement("any_nft", "base", "any")


@dataclass
class Balances:
    """A node with these balances, of which None means that it does not answer. No index lists a token there."""

    held: dict[tuple[str, str], int | None]
    asked: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])

    def endpoints(self, _: str) -> int:
        return 1

    async def anything(self, *_: object, **__: object) -> TokenSheet:
        return replace(tokens("base", {}), contract="any")

    async def tokens(self, _: str, contract: str, owners: Sequence[str], **__: object) -> TokenSheet:
        self.asked |= {(contract, owner) for owner in owners}
        return replace(tokens("base", {VAULT: {"1": 1}}), contract=contract)

    async def balances(self, chain: str, segments: Sequence[Segment], **_: object) -> list[BalanceSheet]:
        return [self._sheet(chain, one) for one in segments]

    def _sheet(self, chain: str, segment: Segment) -> BalanceSheet:
        contracts, owners = sorted(segment.contracts), sorted(segment.owners)
        cells = Cells(len(contracts), len(owners))
        for row, contract in enumerate(contracts):
            for column, owner in enumerate(owners):
                self.asked.add((contract, owner))
                cells.put(row, column, self.held.get((contract, owner), 0))
        return BalanceSheet(chain, 70, NOW, 0, "base node 1", packed(contracts), packed(owners), cells)


async def any_nft(node: Balances, *vaults: Vault) -> Reading:
    """Return the reading of any NFT for a member with these vaults."""
    wants = with_vaults(by_chain([ANYTHING], {})["base"], [ANYTHING], vaults)
    outside = cast("Gateways", SimpleNamespace(chains=node))
    answers = await fetch.ask(outside, HoldingsQuestion("base", wants, (HOT, VAULT)))
    return read(ANYTHING, [("evm", HOT)], answers, Delegated(vaults))


OF_COINS = Vault("base", VAULT, (Stake(True, COINS, delegate=HOT),))


@pytest.mark.parametrize(("amount", "vaults"), [(7, 0), (None, 3)])
async def test_a_contract_that_only_a_claim_names_says_nothing_about_the_members_own_wallet(
    amount: int | None, vaults: int
) -> None:
    """Anybody can delegate any contract's tokens to anybody: a coin, or one that answers for the vault alone."""
    node = Balances({(COINS, HOT): amount, (COINS, VAULT): vaults})
    found = await any_nft(node, OF_COINS)
    assert (found.answer, found.held) == (YES if vaults else NO, vaults)
    assert found.parts[0] == WalletShare(HOT, 0)
    assert node.asked == {(COINS, VAULT)}, "nobody else is asked about"


async def test_a_claim_on_a_contract_without_an_answer_leaves_the_vault_unknown() -> None:
    assert (await any_nft(Balances({(COINS, VAULT): None}), OF_COINS)).answer is UNKNOWN


async def test_a_single_token_in_a_claim_is_looked_for_in_its_vault_alone() -> None:
    """A server has thousands of wallets, and anybody can delegate hundreds of tokens to one of its members."""
    node, vault = Balances({}), Vault("base", VAULT, MINE_ALONE)
    wants = with_vaults(Wants(), [Requirement("basic", "base", CATS)], [vault])
    outside = cast("Gateways", SimpleNamespace(chains=node))
    first = await fetch.ask(outside, HoldingsQuestion("base", wants, (HOT, VAULT)))
    again = await fetch.ask_again(outside, HoldingsQuestion("base", wants, (HOT, VAULT)), [first])
    assert first.tokens.keys() == again.tokens.keys() == {(CATS, ("1",))}
    assert node.asked == {(CATS, VAULT)}
    elsewhere = await fetch.ask_again(outside, HoldingsQuestion("base", wants, (HOT,)), [first])
    assert elsewhere.tokens == {}, "the member whose loss is confirmed does not count the vault"
