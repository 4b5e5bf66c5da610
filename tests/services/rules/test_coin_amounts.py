"""Amounts of coins: as people write them, in the coin's smallest unit, and in words."""

from random import Random

import pytest

from services.core.errors import FieldRefused
from services.rules.expression import Not, Requirement, parse, to_document
from services.rules.types.coin import CoinAmount, units, whole_coins
from services.rules.types.declaration import ExpressionRefused
from services.rules.wording import automatic_name, in_words

COIN = "0x" + "c0" * 20
PLACE = "USD Coin on Base"


def leaf(least: str | None = None, most: str | None = None, decimals: int | None = 6) -> Requirement:
    return Requirement("token", "base", COIN, details=CoinAmount(least, most, decimals))


def words(least: str | None = None, most: str | None = None) -> tuple[str, str]:
    wanted, names = leaf(least, most), {("base", COIN): "USD Coin"}
    return in_words(wanted, names), in_words(Not(wanted), names)


def test_a_condition_is_stored_with_the_decimals_that_its_coin_has() -> None:
    document = {"type": "token", "chain": "base", "contract": COIN, "min": "100", "max": "250.5"}
    assert parse(document) == leaf("100", "250.5", None)
    stored = to_document(leaf("100", "250.5"))
    assert (stored["min"], stored["max"], stored["decimals"]) == ("100", "250.5", 6)
    assert parse(stored) == leaf("100", "250.5")


@pytest.mark.parametrize(
    "wrong", [{"min": 0.1}, {"min": True}, {"max": ["1"]}, {"min": "1", "decimals": 37}, {"least": "1"}]
)
def test_a_condition_of_another_shape_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ExpressionRefused):
        parse({"type": "token", "chain": "base", "contract": COIN, **wrong})


@pytest.mark.parametrize(
    ("given", "kept"),
    [("100", "100"), (" 0100.50 ", "100.5"), ("0.000001", "0.000001"), ("7.0000000", "7"), ("0", "0")],
)
def test_amounts_are_kept_in_their_shortest_form(given: str, kept: str) -> None:
    assert CoinAmount(given, "1000", 6).checked("base", COIN).least == kept


@pytest.mark.parametrize(
    ("least", "most", "decimals", "said"),
    [
        (None, None, 6, "at least how many coins"),
        ("0", None, 6, "Everybody has at least 0"),
        ("5", "4.9", 6, "must not be less"),
        ("0.0000001", None, 6, "6 decimals"),
        ("0.5", None, 0, "no decimals"),
        ("1,000", None, 6, "such as 100 or 0.5"),
        ("-1", None, 6, "such as 100 or 0.5"),
        ("1e6", None, 6, "such as 100 or 0.5"),
        ("\u0663", None, 6, "such as 100 or 0.5"),
        (str(2**256), None, 0, "so much"),
        ("1" + 70 * "0", None, 18, "so much"),
    ],
)
def test_what_is_no_amount_of_the_coin_is_refused(
    least: str | None, most: str | None, decimals: int, said: str
) -> None:
    with pytest.raises(FieldRefused, match=said):
        CoinAmount(least, most, decimals).checked("base", COIN)


def test_bounds_are_integers_in_the_smallest_unit() -> None:
    assert CoinAmount("100", "250.5", 6).bounds() == (100_000_000, 250_500_000)
    assert CoinAmount(None, "0.3", 18).bounds() == (0, 3 * 10**17)
    assert CoinAmount("0.1", None, 30).bounds() == (10**29, None)


def test_no_digit_is_lost_between_units_and_whole_coins() -> None:
    random = Random(7)
    for _ in range(2_000):
        decimals, amount = random.randint(0, 36), random.getrandbits(random.randint(1, 256))
        assert units(whole_coins(amount, decimals), decimals) == amount


def test_a_condition_and_its_opposite_have_words_of_their_own() -> None:
    assert words("100") == (f"At least 100 of {PLACE}", f"Less than 100 of {PLACE}")
    assert words(None, "250.5") == (f"At most 250.5 of {PLACE}", f"More than 250.5 of {PLACE}")
    assert words("1", "2") == (f"Between 1 and 2 of {PLACE}", f"Not between 1 and 2 of {PLACE}")
    assert words("2", "2") == (f"Exactly 2 of {PLACE}", f"Not exactly 2 of {PLACE}")
    assert words(None, "0") == words("0", "0") == (f"No {PLACE}", f"Some {PLACE}")


@pytest.mark.parametrize(
    ("least", "most", "name"),
    [
        ("100", None, "100 USD Coin"),
        (None, "5", "Up to 5 USD Coin"),
        ("1", "5", "1 to 5 USD Coin"),
        (None, "0", "No USD Coin"),
        (None, None, ""),
    ],
)
def test_the_automatic_name_says_how_much(least: str | None, most: str | None, name: str) -> None:
    assert automatic_name("token", "base", "USD Coin", details=CoinAmount(least, most)) == name
    assert automatic_name("token", "base", None, details=CoinAmount(least, most)) == ""
