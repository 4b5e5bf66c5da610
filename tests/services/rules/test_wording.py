"""Rules in plain words, with the collections' names where they are known."""

from dataclasses import replace

import pytest

from services.rules.expression import AtLeast, Expression, Not, Requirement
from services.rules.wording import Line, in_lines, in_words

CATS, FOXES = Requirement("basic", "base", "0x" + "11" * 20, 3), Requirement("basic", "ethereum", "0x" + "22" * 20)
NAMES = {("base", CATS.contract): "Mellow Cats", ("base", FOXES.contract): "Not those"}
MINT = "So11111111111111111111111111111111111111112"


def trait(value: str, least: int = 1) -> Requirement:
    return Requirement("trait", "base", CATS.contract, least, (("Level", value),))


def limited(least: int, most: int) -> Requirement:
    return replace(CATS, min_tokens=least, max_tokens=most)


def ids(*entries: str) -> Requirement:
    return Requirement("token_id", "base", CATS.contract, token_ids=entries)


@pytest.mark.parametrize(
    ("leaf", "words", "without"),
    [
        (CATS, "At least 3 tokens of Mellow Cats on Base", "Fewer than 3 tokens of Mellow Cats on Base"),
        (FOXES, "At least 1 token of 0x2222...2222 on Ethereum", "No token of 0x2222...2222 on Ethereum"),
        (
            trait("Gold", 2),
            "At least 2 tokens of Mellow Cats on Base with Level: Gold",
            "Fewer than 2 tokens of Mellow Cats on Base with Level: Gold",
        ),
        (
            trait(">=10"),
            "At least 1 token of Mellow Cats on Base with Level of at least 10",
            "No token of Mellow Cats on Base with Level of at least 10",
        ),
        (
            trait("≤ 5"),
            "At least 1 token of Mellow Cats on Base with Level of at most 5",
            "No token of Mellow Cats on Base with Level of at most 5",
        ),
        (
            trait(">=   a\nb  "),
            "At least 1 token of Mellow Cats on Base with Level of at least a\nb",
            "No token of Mellow Cats on Base with Level of at least a\nb",
        ),
        (
            trait(">="),
            "At least 1 token of Mellow Cats on Base with Level: >=",
            "No token of Mellow Cats on Base with Level: >=",
        ),
        (ids("5"), "Token 5 of Mellow Cats on Base", "Not token 5 of Mellow Cats on Base"),
        (
            ids("5", "100-200"),
            "Any of the tokens 5 or 100 to 200 of Mellow Cats on Base",
            "None of the tokens 5 or 100 to 200 of Mellow Cats on Base",
        ),
        (
            ids("1-3"), "Any of the tokens 1 to 3 of Mellow Cats on Base",
            "None of the tokens 1 to 3 of Mellow Cats on Base",
        ),
        (
            ids(*map(str, range(1, 10))),
            "Any of the tokens 1, 2, 3, 4, 5, 6 and 3 more of Mellow Cats on Base",
            "None of the tokens 1, 2, 3, 4, 5, 6 and 3 more of Mellow Cats on Base",
        ),
        (
            Requirement("token_id", "solana", MINT, token_ids=(MINT,)),
            "Token So1111...1112 of So1111...1112 on Solana",
            "Not token So1111...1112 of So1111...1112 on Solana",
        ),
        (Requirement("any_nft", "apechain", "any"), "Any NFT on ApeChain", "No NFT on ApeChain"),
        (
            Requirement("trait", "base", CATS.contract, 1, (("Fur", "Gold"), ("Level", "5..10"), ("Rank", ">3"))),
            "At least 1 token of Mellow Cats on Base with Fur: Gold, Level of 5 to 10 and Rank of more than 3",
            "No token of Mellow Cats on Base with Fur: Gold, Level of 5 to 10 and Rank of more than 3",
        ),
        (
            Requirement("trait", "base", CATS.contract, 1, (("Say", "Wait..what"), ("Heart", "<3x"), ("Size", ">1e3"))),
            "At least 1 token of Mellow Cats on Base with Say: Wait..what, Heart: <3x and Size of more than 1e3",
            "No token of Mellow Cats on Base with Say: Wait..what, Heart: <3x and Size of more than 1e3",
        ),
        (
            limited(1, 4), "1 to 4 tokens of Mellow Cats on Base",
            "Either none or more than 4 tokens of Mellow Cats on Base",
        ),
        (
            limited(5, 19), "5 to 19 tokens of Mellow Cats on Base",
            "Either fewer than 5 or more than 19 tokens of Mellow Cats on Base",
        ),
        (limited(0, 0), "No token of Mellow Cats on Base", "At least 1 token of Mellow Cats on Base"),
        (limited(0, 1), "At most 1 token of Mellow Cats on Base", "More than 1 tokens of Mellow Cats on Base"),
        (
            limited(2, 2), "Exactly 2 tokens of Mellow Cats on Base",
            "Either fewer than 2 or more than 2 tokens of Mellow Cats on Base",
        ),
        (
            replace(ids("1-3"), min_tokens=0, max_tokens=0), "None of the tokens 1 to 3 of Mellow Cats on Base",
            "At least 1 of the tokens 1 to 3 of Mellow Cats on Base",
        ),
        (Requirement("any_nft", "base", "any", 0, max_tokens=0), "No NFT on Base", "At least 1 NFT on Base"),
    ],
)  # fmt: skip
def test_every_kind_of_condition_and_its_opposite(leaf: Requirement, words: str, without: str) -> None:
    assert in_words(leaf, NAMES) == words
    assert in_words(Not(leaf), NAMES) == without
    assert in_words(Not(Not(leaf)), NAMES) == words


def test_groups_say_how_many_of_them_count() -> None:
    cats, foxes = in_words(CATS, NAMES), in_words(FOXES, NAMES)
    both, either = AtLeast(2, (CATS, FOXES)), AtLeast(1, (CATS, Not(FOXES)))
    two = AtLeast(2, (CATS, FOXES, CATS))
    assert in_words(both, NAMES) == f"All of: {cats}; {foxes}"
    assert in_words(either, NAMES) == f"Any of: {cats}; {in_words(Not(FOXES), NAMES)}"
    assert in_words(two, NAMES) == f"At least 2 of: {cats}; {foxes}; {cats}"
    assert in_words(Not(both), NAMES) == f"Not all of: {cats}; {foxes}"
    assert in_words(Not(AtLeast(1, (CATS, FOXES))), NAMES) == f"None of: {cats}; {foxes}"
    assert in_words(Not(two), NAMES) == f"Fewer than 2 of: {cats}; {foxes}; {cats}"
    assert in_words(AtLeast(1, (CATS,)), NAMES) == cats


def test_a_group_within_a_group_stands_in_brackets_and_on_lines_of_its_own() -> None:
    cats, foxes = in_words(CATS, NAMES), in_words(FOXES, NAMES)
    tree: Expression = AtLeast(2, (FOXES, Not(AtLeast(1, (CATS, FOXES)))))
    assert in_words(tree, NAMES) == f"All of: {foxes}; (None of: {cats}; {foxes})"
    assert in_lines(tree, NAMES) == (
        Line(0, "All of:"), Line(1, foxes), Line(1, "None of:"), Line(2, cats), Line(2, foxes),
    )  # fmt: skip
    assert in_lines(Not(CATS), NAMES) == (Line(0, in_words(Not(CATS), NAMES)),)
