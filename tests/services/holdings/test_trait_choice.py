"""Which tokens are read first when there are too many."""

import pytest

from services.collections.trait_sources import TokenKey
from services.holdings import trait_choice
from services.holdings.trait_choice import choose


@pytest.fixture(autouse=True)
def nothing_failed() -> None:
    trait_choice._failed.clear()  # pyright: ignore[reportPrivateUsage]


def tokens(contract: str, many: int) -> set[TokenKey]:
    return {("base", contract, str(number)) for number in range(many)}


def test_a_member_with_thousands_of_tokens_takes_no_turn_from_the_others() -> None:
    greedy, modest = tokens("0xa", 6_000), tokens("0xb", 3)
    chosen = choose({"greedy": greedy, "modest": modest}, 10)
    assert len(chosen) == len(set(chosen)) == 10
    assert modest < set(chosen)


def test_what_could_not_be_read_goes_last_and_everything_has_its_turn() -> None:
    mine = tokens("0xa", 50)
    seen: set[TokenKey] = set()
    for _ in range(5):
        chosen = choose({"me": mine}, 10)
        trait_choice.remember(dict.fromkeys(chosen, "no answer"))
        assert not seen & set(chosen)
        seen |= set(chosen)
    assert seen == mine
    assert len(choose({"me": mine}, 10)) == 10, "then the failed ones are tried again"


def test_a_token_of_two_members_is_read_once() -> None:
    shared = tokens("0xa", 4)
    assert sorted(choose({"one": shared, "two": shared}, 600)) == sorted(shared)


def test_only_so_many_failures_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trait_choice, "MOST_REMEMBERED", 5)
    trait_choice.remember(dict.fromkeys(tokens("0xa", 20), "no answer"))
    assert len(trait_choice._failed) == 5  # pyright: ignore[reportPrivateUsage]
