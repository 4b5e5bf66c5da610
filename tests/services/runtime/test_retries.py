from itertools import islice

from services.runtime.retries import backoff, doubled


def test_pauses_double_up_to_the_longest_one() -> None:
    assert list(islice(backoff(1.0, 5.0), 5)) == [1.0, 2.0, 4.0, 5.0, 5.0]


def test_any_number_of_tries_has_a_pause() -> None:
    assert [doubled(1.0, tries, 5.0) for tries in (0, 1, 2, 3, 10_000)] == [1.0, 2.0, 4.0, 5.0, 5.0]
