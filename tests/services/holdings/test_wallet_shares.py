"""One NFT counts for one member: vaults are divided by their claims, in any order and of any kind.

Which vaults count beside a member's own wallets: for functions, for sums that may fall, and in the evidence.
"""

from collections.abc import Sequence
from itertools import combinations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from services.core.answer import Answer
from services.holdings import wallet_shares
from services.holdings.wallet_shares import (
    TOO_MANY,
    Delegated,
    Stake,
    Vault,
    WalletShare,
    conclude_for,
    counting,
    doubts_of,
    vaults_for,
)
from services.rules.expression import Requirement
from services.rules.types.view_call import ViewCall

CATS, DOGS = "0xca", "0xd0"
IDS = ("1", "2", "3")
PEOPLE = ("ann", "ben", "cem")

stakes = st.builds(Stake, st.just(False), st.sampled_from(["", CATS, DOGS]), st.just(""), st.none()) | st.builds(
    Stake, st.just(False), st.sampled_from([CATS, DOGS]), st.sampled_from(IDS), st.none() | st.integers(1, 4)
)
claims = st.lists(st.tuples(st.sampled_from(PEOPLE), stakes), min_size=1, max_size=6)
holdings = st.dictionaries(st.sampled_from(IDS), st.integers(1, 5))


def vault(listed: Sequence[tuple[str, Stake]], who: str) -> Vault:
    """Return the vault from the point of view of one claimant."""
    seen = (Stake(name == who, one.contract, one.token_id, one.amount, name) for name, one in listed)
    return Vault("base", "0xva", tuple(seen))


def shares(listed: Sequence[tuple[str, Stake]], held: dict[str, int]) -> dict[str, dict[str, int]]:
    return {who: vault(listed, who).cut(CATS).of(held) for who in PEOPLE}


def one_by_one(listed: Sequence[tuple[str, Stake]], held: dict[str, int]) -> dict[str, dict[str, int]]:
    """Compute the same in the simplest way: each token goes to the first claimant whose claim is not used up."""
    found: dict[str, dict[str, int]] = {who: {} for who in PEOPLE}
    for token, amount in held.items():
        taken = [0] * len(listed)
        for _ in range(amount):
            for place, (who, one) in enumerate(listed):
                fits = one.contract in {"", CATS} and one.token_id in {"", token}
                if fits and (one.amount is None or taken[place] < one.amount):
                    taken[place] += 1
                    found[who][token] = found[who].get(token, 0) + 1
                    break
    return found


@given(claims, holdings)
@example([("ann", Stake(False, CATS, "1", 2)), ("ben", Stake(False))], {"1": 5})
def test_every_token_goes_to_the_oldest_claim_on_it(listed: list[tuple[str, Stake]], held: dict[str, int]) -> None:
    assert shares(listed, held) == one_by_one(listed, held)


@given(claims, holdings)
def test_no_token_counts_for_two(listed: list[tuple[str, Stake]], held: dict[str, int]) -> None:
    for token, amount in held.items():
        assert sum(part.get(token, 0) for part in shares(listed, held).values()) <= amount


@given(claims, holdings, st.tuples(st.sampled_from(PEOPLE), stakes))
def test_a_younger_claim_takes_nothing_from_an_older_one(
    listed: list[tuple[str, Stake]], held: dict[str, int], younger: tuple[str, Stake]
) -> None:
    before, after = shares(listed, held), shares([*listed, younger], held)
    for who in PEOPLE:
        for token in IDS:
            assert after[who].get(token, 0) >= before[who].get(token, 0)


@given(claims, holdings)
def test_a_count_of_all_and_the_claimed_tokens_tell_the_same_as_a_list(
    listed: list[tuple[str, Stake]], held: dict[str, int]
) -> None:
    for who in PEOPLE:
        cut = vault(listed, who).cut(CATS)
        named = {token: amount for token, amount in held.items() if token in cut.ids}
        assert cut.out_of(sum(held.values()), named) == sum(cut.of(held).values())


@given(claims, holdings)
def test_what_is_said_of_a_share_is_true(listed: list[tuple[str, Stake]], held: dict[str, int]) -> None:
    for who in PEOPLE:
        seen = vault(listed, who)
        cut = seen.cut(CATS)
        if cut.nothing:
            assert cut.of(held) == {}
        if cut.whole:
            assert cut.of(held) == held
        assert (cut.mark == "") == cut.whole
        if seen.whole:
            assert cut.whole
            assert seen.cut(DOGS).whole
        assert seen.rest == bool(seen.cut("0xe1").rest)


def test_the_same_share_has_the_same_mark_and_another_one_does_not() -> None:
    listed = [("ann", Stake(False, CATS, "1")), ("ben", Stake(False))]
    marks = {vault(listed, who).cut(CATS).mark for who in PEOPLE}
    assert len(marks) == 3
    few, more = (vault([("ann", Stake(False, CATS, "1", amount)), ("ben", Stake(False))], "ben") for amount in (1, 2))
    assert few.mark != more.mark != ""
    assert few.cut(CATS).mark != more.cut(CATS).mark
    assert (few.through, few.named, vault([("ben", Stake(False))], "ben").mark) == ("ben", (CATS,), "")
    assert vault(listed, "ben").cut(CATS).mark == vault([*listed, ("cem", Stake(False))], "ben").cut(CATS).mark


YES, NO, UNKNOWN = Answer.YES, Answer.NO, Answer.UNKNOWN
BASIC = Requirement("basic", "base", CATS)
ANYTHING = Requirement("any_nft", "base", "any")
STAKED = Requirement("call", "base", CATS, details=ViewCall("staked(address) view returns (uint256)"))
MINE, THEIRS = Stake(True, delegate="me"), Stake(False, delegate="them")
MY_CATS, THEIR_CAT = Stake(True, CATS, delegate="me"), Stake(False, CATS, "1", delegate="them")
MY_CAT, MY_DOGS = Stake(True, CATS, "1", delegate="me"), Stake(True, DOGS, delegate="me")


def points(compare: str, value: int) -> Requirement:
    """Return a condition on a function whose answer can be below 0."""
    call = ViewCall("points(address) view returns (int256)", compare=compare, value=str(value))
    return Requirement("call", "base", CATS, details=call)


@pytest.mark.parametrize(
    ("stakes", "counts"),
    [
        ((MINE,), {BASIC, STAKED, ANYTHING}),
        ((MY_CATS,), {BASIC, STAKED, ANYTHING}),
        # A function's answer about a vault cannot be divided.
        ((THEIR_CAT, MINE), {BASIC, ANYTHING}),
        ((MY_CAT,), {BASIC, ANYTHING}),
        ((MY_DOGS,), {ANYTHING}),
        ((MY_DOGS, THEIRS), {ANYTHING}),
    ],
)
def test_a_vault_counts_for_what_the_member_has_a_claim_on(stakes: tuple[Stake, ...], counts: set[Requirement]) -> None:
    delegated = Delegated((Vault("base", "0xva", stakes),))
    for leaf in (BASIC, STAKED, ANYTHING):
        assert list(vaults_for(leaf, delegated)) == ([*delegated.vaults] if leaf in counts else []), leaf
    assert list(vaults_for(BASIC, Delegated((Vault("polygon", "0xva", stakes),)))) == []


def test_a_doubt_is_a_share_of_unknown_vaults_on_its_chain() -> None:
    doubted = Delegated(doubts={"base": "no answer"})
    assert list(doubts_of(BASIC, doubted)) == [WalletShare("", 0, "no answer")]
    assert list(doubts_of(BASIC, Delegated(doubts={"polygon": "no answer"}))) == []
    assert list(doubts_of(BASIC, None)) == list(vaults_for(BASIC, None)) == []


def a_vault(amount: int, reason: str | None = None) -> WalletShare:
    return WalletShare("v", amount, reason, through="w")


faults = st.sampled_from([None, None, "a fault"])
own_wallets = st.lists(st.builds(WalletShare, st.just("w"), st.integers(-6, 6), faults), max_size=2)
some_vaults = st.lists(st.builds(a_vault, st.integers(-6, 6), faults), max_size=4)


@given(st.sampled_from([">=", "<="]), st.integers(-9, 9), own_wallets, some_vaults)
def test_a_sum_that_may_fall_is_helped_by_any_selection_of_vaults_and_hurt_by_none(
    compare: str, value: int, own: list[WalletShare], vaults: list[WalletShare]
) -> None:
    leaf = points(compare, value)
    alone = conclude_for(leaf, own)[0]
    found = counting(leaf, own, vaults)
    answer = conclude_for(leaf, found)[0]
    assert found[: len(own)] == tuple(own)
    if alone is not NO:
        assert (answer, found) == (alone, tuple(own))
        return
    known = [vault.amount for vault in vaults if vault.reason is None]
    held = sum(part.amount for part in own)
    sums = {held + sum(some) for size in range(len(known) + 1) for some in combinations(known, size)}
    fits = max(sums) >= value if compare == ">=" else min(sums) <= value
    assert answer is (YES if fits else UNKNOWN if len(known) < len(vaults) else NO)
    if answer is NO:
        assert found == (*own, *vaults), "the evidence lists all of them"
    if answer is YES:
        assert all(vault.reason is None and vault.amount for vault in found[len(own) :]), "and then those that help"


amounts = st.lists(st.builds(a_vault, st.integers(0, 6), faults), max_size=4)
own_amounts = st.lists(st.builds(WalletShare, st.just("w"), st.integers(0, 6), faults), max_size=2)


@given(own_amounts, amounts)
def test_without_a_maximum_every_vault_counts(own: list[WalletShare], vaults: list[WalletShare]) -> None:
    assert counting(BASIC, own, vaults) == (*own, *vaults)


@given(st.integers(1, 6), st.integers(0, 3), own_amounts, amounts)
def test_with_a_maximum_the_evidence_lists_what_decided(
    least: int, more: int, own: list[WalletShare], vaults: list[WalletShare]
) -> None:
    leaf = Requirement("basic", "base", CATS, least, max_tokens=least + more)
    alone, held = conclude_for(leaf, own)[0], sum(part.amount for part in own)
    found = counting(leaf, own, vaults)
    answer, others = conclude_for(leaf, found)[0], found[len(own) :]
    assert found[: len(own)] == tuple(own)
    if alone is not NO or held > least + more:
        assert (answer, others) == (alone, ())
    elif answer is YES:
        assert all(vault.amount and vault.reason is None for vault in others)
    elif answer is NO:
        assert others == tuple(vaults)
    else:
        assert [(one.amount, one.reason) for one in others] == [(0, one.reason) for one in vaults if one.reason]


def test_vaults_that_are_too_many_to_compare_add_nothing_to_what_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """Taken one after the other, from the largest on or from the smallest on, none of these fit; two of them do."""
    leaf, own = Requirement("basic", "base", CATS, 10, max_tokens=10), WalletShare("w", 1)
    vaults = [a_vault(8), a_vault(5), a_vault(4), a_vault(3)]
    assert counting(leaf, [own], vaults) == (own, a_vault(5), a_vault(4))
    monkeypatch.setattr(wallet_shares, "MOST_SUMS", 1)
    assert counting(leaf, [own], vaults) == (own, WalletShare("", 0, TOO_MANY))
