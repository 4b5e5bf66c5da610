"""Lists of addresses as text, and the conditions that name them: reading, refusals, and storage."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.core.answer import Answer
from services.core.errors import FieldRefused
from services.engine.reconcile_outcome import read_own
from services.holdings.evaluate import verdict
from services.rules.expression import AtLeast, ExpressionRefused, Not, Requirement, parse, requirements, to_document
from services.rules.types import address_list_text, own_tables
from services.rules.types.address_list import AddressList
from services.rules.types.address_list_text import ListRefused
from services.rules.types.any_wallet import AnyWallet
from services.rules.types.own_tables import OwnTables
from services.rules.types.submitted_address_lists import GivenLists
from services.rules.wording import in_words

ONE, TWO, THREE = (f"0x{number:040x}" for number in (10, 11, 12))
SOLANA = "7EcDhSYGxXyscszYEp35KHN8vvw3svAuLKTzXwCFLtV"
LIST = AddressList("ab" * 16, 2)
ON_LIST = Requirement("address_list", "", "", details=LIST)
ANY, EVM, SOL = (Requirement("any_wallet", "", "", details=AnyWallet(family)) for family in ("", "evm", "solana"))


async def wrong(text: str) -> list[tuple[int, str]]:
    with pytest.raises(ListRefused) as refused:
        await address_list_text.of_text(text)
    assert refused.value.field == "addresses"
    mistakes = refused.value.more["mistakes"]
    assert isinstance(mistakes, list)
    return [(one["line"], one["reason"]) for one in mistakes]


async def test_pasted_text_and_csv_files_are_read_with_headings_quotes_and_other_columns() -> None:
    wanted = {ONE, TWO, SOLANA}
    for text in (
        f"{ONE}\n{TWO}\n{SOLANA}\n",
        f"{ONE}, {TWO};{SOLANA}",
        f"\ufeffWallet Address,amount\r\n\"{ONE}\",5\r\n\r\n'{TWO}',7\r\n{SOLANA},9\r\n",
        f"amount\twallet\n5\t{ONE.upper().replace('X', 'x')}\n7\t{TWO}\n9\t{SOLANA}",
    ):
        read = await address_list_text.of_text(text)
        assert (set(read.addresses), read.count) == (wanted, 3), text
    assert len({(await address_list_text.of_text(text)).digest for text in (f"{ONE}\n{TWO}", f"{TWO}\n{ONE}")}) == 1


async def test_a_text_of_empty_lines_keeps_nobody_waiting() -> None:
    turns = 0

    async def somebody_else() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    other = asyncio.create_task(somebody_else())
    with pytest.raises(FieldRefused, match="Add the addresses"):
        await address_list_text.of_text("\n" * 200_000)
    other.cancel()
    assert turns > 1


async def test_mistakes_and_repetitions_are_named_by_their_lines() -> None:
    assert await wrong(f"address\n{ONE}\n0x12\n\nada.eth\n{ONE.upper().replace('X', 'x')}\nsomething") == [
        (3, "An address that starts with 0x has 42 characters: 0x and 40 of 0-9 and a-f."),
        (5, "ada.eth is a name. Names cannot be looked up here: paste the address (0x…) instead."),
        (6, "This address is in line 2 already."),
        (7, "That is not a wallet address. Paste one that starts with 0x and has 42 characters, or a Solana address."),
    ]
    (typo,) = await wrong("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed\n0x5AAeb6053F3E94C9b9A09f33669435E7Ef1BeAed")
    assert (typo[0], "capital letters" in typo[1]) == (2, True)
    with pytest.raises(ListRefused, match=r"^Line 1: .* Line 5: .* And 4 more lines\.$"):
        await address_list_text.of_items(["?"] * 9)
    for nothing in ("", " \n,;\n", "address"):
        with pytest.raises(FieldRefused, match="Add the addresses"):
            await address_list_text.of_text(nothing)


async def test_what_is_no_list_of_texts_or_too_long_is_refused() -> None:
    for given_ in ({}, "0x", 5, None):
        with pytest.raises(FieldRefused, match="must be a list of texts"):
            await address_list_text.of_items(given_)
    assert await _mistakes([ONE, 5, None, {}]) == [2, 3, 4]
    most = [f"0x{number:040x}" for number in range(address_list_text.MOST_ADDRESSES + 1)]
    with pytest.raises(FieldRefused, match="at most 20,000"):
        await address_list_text.of_items(most)
    assert (await address_list_text.of_items(most[1:])).count == address_list_text.MOST_ADDRESSES


async def _mistakes(items: object) -> list[int]:
    with pytest.raises(ListRefused) as refused:
        await address_list_text.of_items(items)
    mistakes = refused.value.more["mistakes"]
    assert isinstance(mistakes, list)
    return [one["line"] for one in mistakes]


@given(st.text(max_size=300))
async def test_no_text_breaks_the_reading(text: str) -> None:
    try:
        read = await address_list_text.of_text(text)
    except FieldRefused:
        return
    for one in read.addresses:
        assert (await address_list_text.of_items([one])).addresses == (one,)


async def test_lists_are_taken_out_of_a_rule_wherever_they_are_and_named_in_their_places() -> None:
    lists = GivenLists()
    given_ = {
        "any": [
            {"type": "address_list", "addresses": [TWO, ONE]},
            {"not": {"type": "address_list", "addresses": [SOLANA]}},
        ]
    }
    bare = lists.take_out(given_)
    assert ONE not in str(bare)
    assert [leaf.details for leaf in requirements(parse(bare))] != [None, None]
    read = await lists.read()
    first, second = (leaf.details for leaf in requirements(parse(lists.put_in(bare))))
    assert isinstance(first, AddressList)
    assert isinstance(second, AddressList)
    assert (first.count, second.count) == (2, 1)
    assert read[first.list].addresses == (ONE, TWO)
    deep: object = {"addresses": []}
    for _ in range(5_000):
        deep = [deep]
    assert lists.take_out(deep) is not None, "no recursion without an end"


async def test_a_list_that_is_null_is_none() -> None:
    lists = GivenLists()
    bare = lists.take_out({"minTokens": 2, "addresses": None})
    assert (bare, await lists.read()) == ({"minTokens": 2}, {})


def test_conditions_without_a_chain_read_back_and_say_what_they_ask_for() -> None:
    listed = {"type": "address_list", "list": "ab" * 16, "count": 2}
    for leaf, document, words, opposite in (
        (ON_LIST, listed, "A wallet on a list of 2 addresses", "No wallet on a list of 2 addresses"),
        (ANY, {"type": "any_wallet"}, "Any verified wallet", "No verified wallet"),
        (EVM, {"type": "any_wallet", "family": "evm"}, "A verified EVM wallet", "No verified EVM wallet"),
        (SOL, {"type": "any_wallet", "family": "solana"}, "A verified Solana wallet", "No verified Solana wallet"),
    ):
        assert to_document(leaf) == document
        assert parse(document) == leaf
        assert (in_words(leaf, {}), in_words(Not(leaf), {})) == (words, opposite)
    assert AddressList("ab" * 16, 20_000).words("") == "A wallet on a list of 20,000 addresses"
    for document in (
        {"type": "any_wallet", "family": "bitcoin"},
        {"type": "any_wallet", "chain": "base"},
        {"type": "address_list"},
        {"type": "address_list", "list": "ab", "count": True},
        {"type": "address_list", "list": "", "count": 1},
    ):
        with pytest.raises(ExpressionRefused):
            parse(document)


wallets = st.lists(
    st.tuples(st.just("evm"), st.sampled_from([ONE, TWO, THREE])) | st.tuples(st.just("solana"), st.just(SOLANA)),
    max_size=4,
)


@given(wallets, st.none() | st.sets(st.sampled_from([ONE, TWO, SOLANA])))
def test_an_answer_is_sure_unless_the_list_is_not_stored(mine: list[tuple[str, str]], listed: set[str] | None) -> None:
    tables = OwnTables({} if listed is None else {LIST.list: frozenset(listed)})
    found = read_own(ON_LIST, mine, tables)
    if not mine:
        assert found.answer is Answer.NO
    elif listed is None:
        assert found.answer is Answer.UNKNOWN, "a list that is not there denies nobody"
    else:
        on_it = {address for _, address in mine} & listed
        assert (found.answer is Answer.YES, found.held, found.source) == (bool(on_it), len(on_it), own_tables.SOURCE)
        assert {part.address for part in found.parts if part.amount} == on_it
    for leaf, families in ((ANY, {"evm", "solana"}), (EVM, {"evm"}), (SOL, {"solana"})):
        proved = {address for family, address in mine if family in families}
        found = read_own(leaf, mine, tables)
        assert (found.answer, found.held) == (Answer.YES if proved else Answer.NO, len(proved))


def test_a_rule_against_a_list_asks_for_a_wallet_of_any_kind() -> None:
    tables = OwnTables({LIST.list: frozenset({ONE})})
    for mine, answer in (
        ([], Answer.NO),
        ([("evm", ONE)], Answer.NO),
        ([("evm", TWO)], Answer.YES),
        ([("solana", SOLANA)], Answer.YES),
    ):
        assert verdict(Not(ON_LIST), mine, lambda leaf, mine=mine: read_own(leaf, mine, tables).answer) is answer
    both = AtLeast(2, (ANY, Not(SOL)))
    assert verdict(both, [("evm", ONE)], lambda leaf: read_own(leaf, [("evm", ONE)], tables).answer) is Answer.YES
