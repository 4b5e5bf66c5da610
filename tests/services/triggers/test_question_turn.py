"""Which wallets on Solana are asked about together."""

import pytest

from services.triggers.solana_poller import ANY, MOST_JOINED, AssetQuestion, QuestionTurn, joined


def about(collection: str, count: int, *, coin: bool = False) -> list[AssetQuestion]:
    """Return `count` questions about ten wallets each."""
    return [
        AssetQuestion(collection, tuple(f"{collection}{number}-{place}" for place in range(10)), coin)
        for number in range(count)
    ]


def asked(turn: QuestionTurn, requests: int) -> list[list[AssetQuestion]]:
    """Ask all questions that are left, each at the cost of `requests` requests."""
    found: list[list[AssetQuestion]] = []
    while turn:
        found.append(turn.next())
        turn.answered(joined(found[-1]), requests)
    return found


def test_wallets_of_a_collection_that_is_read_whole_are_asked_for_together() -> None:
    turn, one, two = QuestionTurn(), about("one", 4), about("two", 3)
    turn.begin([*one, *two])
    assert asked(turn, 9) == [one[:1], one[1:], two[:1], two[1:]]
    turn.begin([*one, *two])
    assert asked(turn, 9) == [one, two], "what was short in the last turn is so in this one"
    assert joined(one).owners == tuple(owner for part in one for owner in part.owners)


def test_a_question_is_as_long_as_those_of_a_sweep_at_most() -> None:
    turn, many = QuestionTurn(), about("one", 2 * MOST_JOINED + 2)
    turn.begin(many)
    assert [len(parts) for parts in asked(turn, 9)] == [1, MOST_JOINED, MOST_JOINED, 1]


def test_wallets_that_are_read_one_by_one_are_asked_for_a_few_at_a_time() -> None:
    turn = QuestionTurn()
    for questions, requests in ((about("one", 3), 10), (about(ANY, 3), 1), (about("one", 3, coin=True), 1)):
        turn.begin(questions)
        assert [len(parts) for parts in asked(turn, requests)] == [1, 1, 1]


@pytest.mark.parametrize("fails", [True, False], ids=["fails", "grows"])
def test_a_collection_that_grows_or_fails_is_asked_for_a_few_wallets_again(fails: bool) -> None:
    turn, questions = QuestionTurn(), about("one", 5)
    turn.begin(questions)
    asked(turn, 9)
    turn.begin(questions)
    whole = joined(turn.next())
    assert len(whole.owners) == 50
    if fails:
        turn.failed(whole)
    else:
        turn.answered(whole, 50)
    turn.begin(questions)
    assert turn.next() == questions[:1]


def test_a_coin_of_the_same_address_is_asked_for_separately() -> None:
    turn, one, coin = QuestionTurn(), about("one", 1), about("one", 1, coin=True)
    turn.begin(one)
    asked(turn, 9)
    turn.begin([*one, *coin])
    assert turn.next() == one
