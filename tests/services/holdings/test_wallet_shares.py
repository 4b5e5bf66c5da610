"""One NFT counts for one member: vaults are divided by their claims, in any order and of any kind."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from services.holdings.wallet_shares import Stake, Vault

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
    assert vault(listed, "ben").cut(CATS).mark == vault([*listed, ("cem", Stake(False))], "ben").cut(CATS).mark
