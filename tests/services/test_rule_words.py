"""Rules in plain words, with the collections' names where they are known."""

from services.expressions import AtLeast, Not, Requirement
from services.rule_words import in_words

CATS, FOXES = Requirement("basic", "base", "0x" + "11" * 20, 3), Requirement("basic", "ethereum", "0x" + "22" * 20)
NAMES = {("base", CATS.contract): "Mellow Cats", ("base", FOXES.contract): "Not those"}


def test_a_known_collection_is_named_and_another_told_by_its_address() -> None:
    assert in_words(CATS, NAMES) == "At least 3 tokens of Mellow Cats on Base"
    assert in_words(FOXES, NAMES) == "At least 1 token of 0x2222...2222 on Ethereum"


def test_groups_say_how_many_of_them_count() -> None:
    cats, foxes = in_words(CATS, NAMES), in_words(FOXES, NAMES)
    assert in_words(AtLeast(2, (CATS, FOXES)), NAMES) == f"All of: {cats}; {foxes}"
    assert in_words(AtLeast(1, (CATS, Not(FOXES))), NAMES) == f"Any of: {cats}; Not: {foxes}"
    assert in_words(AtLeast(2, (CATS, FOXES, CATS)), NAMES) == f"At least 2 of: {cats}; {foxes}; {cats}"
