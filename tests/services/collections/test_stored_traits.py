"""A token's traits: whether they fit, when that is unknown, and what is stored."""

import unicodedata
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text
from sqlmodel import col, select, update

from gateways.chains.metadata_traits import Trait
from models import Collection, Token, now, transaction
from services.collections import collections, stored_traits, trait_sources
from services.collections.trait_match import TokenTraits, folded, matches
from services.collections.trait_sources import TokenKey
from services.core.answer import Answer
from services.privacy import retention
from tests.support.builders import address

YES, NO, UNKNOWN = Answer.YES, Answer.NO, Answer.UNKNOWN
CAT = (
    Trait("Fur", "Gold"), Trait("Hat", "Crown"), Trait("Hat", "Scarf"), Trait("Level", 7), Trait("Speed", 1.5),
    Trait("Rank", "12"), Trait("Born", 1_700_000_000), Trait("Mood", "<3"), Trait("", "Big"),
    Trait("Äther", "caf\u00e9"),
)  # fmt: skip


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]) | st.sampled_from("\u200b\u200d\u2028\u00a0\t aÄ")))
def test_what_is_invisible_is_left_out_and_nothing_else(text: str) -> None:
    seen = "".join(one for one in text if one.isspace() or unicodedata.category(one)[0] != "C")
    composed = unicodedata.normalize("NFC", seen).casefold()
    assert folded(text) == unicodedata.normalize("NFC", composed).strip()


def a_token(*found: Trait, whole: bool = True) -> TokenTraits:
    return TokenTraits(found, trait_sources.FROM_METADATA, now(), whole)


@pytest.mark.parametrize(
    ("kind", "wanted", "answer"),
    [
        ("Fur", "Gold", YES), ("  fur ", " GOLD\n", YES), ("Fur", "Go ld", NO), ("Fur", "Silver", NO),
        ("Hat", "scarf", YES), ("Hat", "crown", YES), ("Hat", "Crown, Scarf", NO), ("Eyes", "Gold", NO),
        ("Level", "7", YES), ("Level", "7.0", YES), ("Level", "+7", YES), ("Level", "8", NO), ("Level", "seven", NO),
        ("Level", ">=7", YES), ("Level", ">= 7", YES), ("Level", "≥6.5", YES), ("Level", ">=8", NO),
        ("Level", "<=7", YES), ("Level", "≤ 7", YES), ("Level", "<=6", NO), ("Level", ">=x", NO), ("Level", ">=", NO),
        ("Speed", "1.50", YES), ("Speed", ">=1.6", NO), ("Rank", ">=12", YES), ("Rank", "12.0", YES),
        ("Born", ">=1600000000", YES), ("Fur", ">=1", NO), ("Mood", "<3", YES), ("Mood", "<=3", NO),
        ("", "big", YES), ("äTHER", "CAFE\u0301", YES), ("Fur\u200b", "G\u200dold", YES), ("Level", "1e400", NO),
        ("Speed", ".5..2", YES), ("Speed", "-.5 .. 1.5", YES), ("Speed", ".5..1", NO), ("Speed", "....5", NO),
    ],
)  # fmt: skip
def test_a_trait_fits_without_regard_to_case_and_outer_spaces_and_numbers_as_numbers(
    kind: str, wanted: str, answer: Answer
) -> None:
    assert matches(a_token(*CAT), kind, wanted) is answer


def test_what_is_not_known_is_neither_yes_nor_no() -> None:
    assert matches(None, "Fur", "Gold") is UNKNOWN
    assert matches(a_token(*CAT, whole=False), "Fur", "Silver") is UNKNOWN
    assert matches(a_token(whole=False), "Fur", "Gold") is UNKNOWN


def test_what_is_there_counts_even_when_something_else_could_not_be_read() -> None:
    assert matches(a_token(*CAT, whole=False), "Fur", "Gold") is YES


def test_metadata_without_any_trait_are_a_no() -> None:
    assert matches(a_token(), "Fur", "Gold") is NO


words = st.text(min_size=1, max_size=12)
values = st.one_of(words, st.integers(-(10**12), 10**12), st.floats(-1e9, 1e9).map(lambda one: round(one, 3)))
trait_lists = st.lists(st.builds(Trait, words, values), max_size=5)


@given(trait_lists, st.booleans(), words, st.one_of(words, values.map(str), values.map(lambda one: f">={one}")))
def test_more_traits_never_turn_a_yes_into_anything_else(
    found: list[Trait], whole: bool, kind: str, wanted: str
) -> None:
    before = matches(a_token(*found, whole=whole), kind, wanted)
    after = matches(a_token(*found, Trait("Another", 1), whole=whole), kind, wanted)
    assert after is before or (before is not YES and after is YES)
    if not whole:
        assert before is not NO


@given(trait_lists.filter(bool), st.data())
def test_every_trait_that_a_token_has_fits_as_it_is_written(found: list[Trait], data: st.DataObject) -> None:
    one = data.draw(st.sampled_from(found))
    shown = f" {one.value}  "
    assert matches(a_token(*found), f"\t{one.kind.swapcase()}" if one.kind.isascii() else one.kind, shown) is YES


@given(st.integers(-(10**9), 10**9), st.integers(-(10**9), 10**9))
def test_at_least_and_at_most_are_those_of_numbers(value: int, limit: int) -> None:
    token = a_token(Trait("Level", value))
    assert (matches(token, "level", f">={limit}") is YES) == (value >= limit)
    assert (matches(token, "level", f"≤ {limit}") is YES) == (value <= limit)
    assert (matches(token, "level", str(limit)) is YES) == (value == limit)


@pytest.mark.parametrize("value", [1e90, -1.5e300, 1e16, 0.1, 10**79])
async def test_a_number_fits_the_same_whether_it_was_stored_or_just_read(database: str, value: float) -> None:
    place, told = ("base", address(), "1"), a_token(Trait("Power", value))
    await remembered({place: told})
    async with transaction() as db:
        (known,) = (await stored_traits.known(db, [place])).values()
    for wanted in (">=10", "<10", f"{value:e}", f"{value}"):
        assert matches(known, "Power", wanted) is matches(told, "Power", wanted) is not UNKNOWN


async def remembered(found: dict[TokenKey, TokenTraits | str]) -> None:
    async with transaction() as db:
        await stored_traits.remember(db, found)


async def test_what_became_known_is_remembered_as_it_was_told(database: str) -> None:
    cats, dogs = address(), address()
    first, second = ("base", cats, "1"), ("polygon", dogs, str(2**255))
    odd = a_token(*CAT)
    await remembered({first: odd, second: a_token(), ("base", cats, "2"): "OpenSea: HTTP 500"})
    async with transaction() as db:
        known = await stored_traits.known(db, [first, second, ("base", cats, "2"), ("base", dogs, str(2**255))])
    assert known == {first: odd, second: TokenTraits((), trait_sources.FROM_METADATA, known[second].read_at)}


async def test_what_is_too_old_is_not_known_and_neither_older_nor_unknown_overwrites(database: str) -> None:
    place = ("base", address(), "1")
    old = TokenTraits((Trait("Fur", "Old"),), trait_sources.FROM_OPENSEA, now() - timedelta(hours=1))
    await remembered({place: a_token(Trait("Fur", "New"))})
    await remembered({place: old})
    await remembered({place: "no answer"})
    async with transaction() as db:
        assert (await stored_traits.known(db, [place]))[place].traits == (Trait("Fur", "New"),)
        await db.exec(update(Token).values(updated_at=now() - stored_traits.fresh_for()))
        assert await stored_traits.known(db, [place]) == {}
        assert (await db.exec(select(Token.token_id))).all() == ["1"]


async def test_tokens_that_nobody_asks_about_are_forgotten_after_a_while(database: str) -> None:
    cats = address()
    await remembered({("base", cats, "1"): a_token(*CAT), ("base", cats, "2"): a_token(*CAT)})
    async with transaction() as db:
        old = update(Token).where(col(Token.token_id) == "1").values(updated_at=now() - stored_traits.KEPT_FOR)
        await db.exec(old)
    async with transaction() as db:
        await retention.housekeep(db)
        assert [row.token_id for row in (await db.exec(select(Token))).all()] == ["2"]


async def test_the_newest_traits_are_kept_of_more_than_there_is_room_for(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    contract = address()
    async with transaction() as db:
        for token_id in ("1", "2", "3"):
            traits = TokenTraits((Trait("Fur", "Gold"),), trait_sources.FROM_METADATA, now())
            await stored_traits.remember(db, {("base", contract, token_id): traits})
        sizes = (await db.execute(text("SELECT pg_column_size(traits) FROM token"))).scalars().all()
        for most, kept in ((1 << 30, ["1", "2", "3"]), (sum(sizes) - 1, ["2", "3"]), (0, [])):
            monkeypatch.setattr(stored_traits, "KEPT_BYTES", most)
            await stored_traits.forget_old(db)
            assert (await db.exec(select(Token.token_id).order_by(col(Token.token_id)))).all() == kept


async def test_a_collection_without_a_name_is_still_looked_up_when_it_is_asked_about(database: str) -> None:
    contract = address()
    await remembered({("base", contract, "1"): a_token(*CAT)})
    async with transaction() as db:
        (row,) = (await db.exec(select(Collection))).all()
        assert now() - row.updated_at > collections.FRESH_FOR
        assert row.source == ""


def test_traits_are_believed_for_some_hours_and_for_no_longer_than_a_quarter_of_a_sweep(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from settings import settings

    for seconds, hours in (("86400", 6), ("1000000", 6), ("7200", 0.5)):
        monkeypatch.setenv("SWEEP_SECONDS", seconds)
        settings.cache_clear()
        assert stored_traits.fresh_for() == timedelta(hours=hours)
    settings.cache_clear()
