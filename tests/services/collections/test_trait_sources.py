"""The sources of traits, against the sandbox's OpenSea, nodes and metadata, with every fault that these can have."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import pytest

from gateways import Gateways, close_gateways, gateways
from gateways.chains.metadata_traits import Trait, TraitList
from gateways.evm.tokens.token_records import TokenRecord
from gateways.metadata import TokenMetadata
from gateways.transport.errors import ProviderDown
from locales.stored_texts import said, storable, with_token_hidden, within
from models import now
from services.collections import trait_sources as traits
from services.collections.trait_match import BETWEEN_SOURCES, TokenTraits, matches, only_source
from services.collections.trait_sources import FROM_METADATA, FROM_OPENSEA, TokenKey, fetch
from services.core.answer import Answer
from settings import settings
from tests.sandbox.control import SandboxControl

STRANGER = "0x" + "5e" * 20


@pytest.fixture
async def outside(sandbox_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Gateways]:
    monkeypatch.setenv("SANDBOX_PORT", str(urlsplit(sandbox_url).port))
    monkeypatch.delenv("PUBLIC_URL", raising=False)
    settings.cache_clear()
    yield gateways()
    await close_gateways()
    settings.cache_clear()


class Shelf:
    """A collection that only this test uses."""

    def __init__(self, control: SandboxControl, chain: str, contract: str) -> None:
        self.control, self.chain, self.contract = control, chain, contract

    def place(self, token: int) -> TokenKey:
        return self.chain, self.contract, str(token)

    async def act(self, action: str, **body: Any) -> None:
        answer = await self.control.post(
            f"/control/chains/{self.chain}/{action}", json={"contract": self.contract} | body
        )
        assert answer.status_code == 200, answer.text

    async def fault(self, target: str, kind: str) -> None:
        await self.control.post("/control/faults", json={"target": target, "kind": kind, "seconds": 60})


async def shelf(control: SandboxControl, chain: str, standard: str, tokens: dict[int, dict[str, Any]]) -> Shelf:
    body = {"standard": standard, "name": "Shelf", "slug": f"shelf-{now():%H%M%S%f}"}
    made = Shelf(control, chain, (await control.post(f"/control/chains/{chain}/deploy", json=body)).json()["contract"])
    for token, found in tokens.items():
        await made.act("mint", token_id=str(token), to=STRANGER)
        await made.act("traits", token_id=str(token), traits=found)
    return made


@pytest.fixture
async def control(sandbox_url: str) -> AsyncIterator[SandboxControl]:
    async with SandboxControl(sandbox_url) as client:
        yield client
        await client.delete("/control/faults")


def answers(found: dict[TokenKey, TokenTraits | str], kind: str, wanted: str) -> list[Answer]:
    return [matches(None if isinstance(one, str) else one, kind, wanted) for _, one in sorted(found.items())]


def sources(found: dict[TokenKey, TokenTraits | str]) -> set[str]:
    return {one if isinstance(one, str) else one.source for one in found.values()}


YES, NO, UNKNOWN = Answer.YES, Answer.NO, Answer.UNKNOWN


@pytest.mark.parametrize(("chain", "standard"), [("arbitrum", "ERC721"), ("abstract", "ERC1155")])
async def test_traits_are_told_by_opensea_and_where_that_fails_by_the_tokens_themselves(
    outside: Gateways, control: SandboxControl, chain: str, standard: str
) -> None:
    odd = await shelf(control, chain, standard, {1: {"Fur": "Gold", "Level": 7}, 2: {"Fur": "Silver"}, 3: {}})
    places = [odd.place(token) for token in (1, 2, 3)]
    found = await fetch(outside, places)
    assert answers(found, "fur", "gold") == [YES, NO, NO]
    assert answers(found, "Level", ">=7") == [YES, NO, NO]
    # OpenSea's empty list for the third token alone proves nothing.
    assert sources(found) == {FROM_OPENSEA, BETWEEN_SOURCES.join((FROM_OPENSEA, FROM_METADATA))}
    assert sources(await fetch(outside, places, own_word_first=True)) == {FROM_METADATA}
    for kind in ("down", "500", "empty", "malformed", "429"):
        await odd.fault("opensea", kind)
        found = await fetch(outside, places)
        assert answers(found, "fur", "gold") == [YES, NO, NO], kind
        assert sources(found) == {FROM_METADATA}
        assert answers(await fetch(outside, places[:1]), "fur", "gold") == [YES], kind


async def test_without_any_source_nothing_is_known_and_the_reason_is_told(
    outside: Gateways, control: SandboxControl
) -> None:
    odd = await shelf(control, "arbitrum", "ERC721", {1: {"Fur": "Gold"}, 2: {}})
    places = [odd.place(1), odd.place(2)]
    await odd.fault("opensea", "500")
    for kind in ("down", "500", "429", "empty", "malformed"):
        await odd.fault("metadata", kind)
        for own_word_first in (False, True):
            found = await fetch(outside, places, own_word_first=own_word_first)
            assert answers(found, "fur", "gold") == [UNKNOWN, UNKNOWN], kind
            assert all("OpenSea" in str(one) for one in found.values())
    await control.delete("/control/faults")
    await odd.fault("metadata", "500")
    found = await fetch(outside, places)
    assert answers(found, "fur", "gold") == [YES, UNKNOWN]
    assert answers(found, "fur", "silver") == [NO, UNKNOWN]


async def test_the_host_of_a_tokens_own_link_is_hidden_with_the_token(
    outside: Gateways, control: SandboxControl
) -> None:
    # A contract of an admin's own may give each token a host of its own.
    odd = await shelf(control, "arbitrum", "ERC721", {1: {"Fur": "Gold"}})
    await odd.fault("opensea", "500")
    await odd.fault("metadata", "500")
    (why,) = (await fetch(outside, [odd.place(1)])).values()
    assert isinstance(why, str)
    reason = storable("token {token}: {reason}", token="1", reason=within(why))
    assert "localhost: HTTP 500" in said(reason)
    assert said(with_token_hidden(reason)) == "token …: OpenSea: HTTP 500; …: HTTP 500"


async def test_a_token_that_is_not_there_and_a_contract_that_is_none_are_unknown(
    outside: Gateways, control: SandboxControl
) -> None:
    odd = await shelf(control, "arbitrum", "ERC721", {1: {"Fur": "Gold"}})
    found = await fetch(outside, [odd.place(99), ("arbitrum", STRANGER, "1"), ("solana", "x" * 32, "y" * 32)])
    assert all(isinstance(one, str) for one in found.values())


async def test_changed_traits_are_read_again(outside: Gateways, control: SandboxControl) -> None:
    odd = await shelf(control, "arbitrum", "ERC721Enumerable", {1: {"Fur": "Gold"}})
    for value in ("Silver", "Bronze"):
        await odd.act("traits", token_id="1", traits={"Fur": value})
        for own_word_first in (False, True):
            found = await fetch(outside, [odd.place(1)], own_word_first=own_word_first)
            assert answers(found, "fur", value) == [YES]


class Lists:
    """A source that gives the same answer for every token."""

    def __init__(self, said: TraitList | ProviderDown) -> None:
        self.said = said

    async def nft(self, chain: str, contract: str, token_id: str) -> TraitList:
        if isinstance(self.said, ProviderDown):
            raise self.said
        return self.said

    async def traits(
        self, chain: str, contract: str, token_ids: Sequence[str], *, apart_from: str = ""
    ) -> dict[str, TraitList | ProviderDown]:
        return dict.fromkeys(token_ids, self.said)


@pytest.mark.parametrize(
    ("opensea", "own", "answer"),
    [
        (TraitList(()), TraitList(()), NO),
        (TraitList(()), TraitList((), whole=False), NO),
        (TraitList(()), ProviderDown("x", "y"), UNKNOWN),
        (ProviderDown("x", "y"), TraitList((), whole=False), UNKNOWN),
        (ProviderDown("x", "y"), TraitList(()), NO),
        (ProviderDown("x", "y"), ProviderDown("x", "y"), UNKNOWN),
    ],
)
async def test_two_sources_that_tell_no_traits_agree_and_one_alone_says_nothing(
    outside: Gateways, opensea: Any, own: Any, answer: Answer
) -> None:
    place = ("base", STRANGER, "1")
    told = replace(outside, opensea=Lists(opensea), metadata=Lists(own))
    for own_word_first in (False, True):
        found = await traits.fetch(told, [place], own_word_first=own_word_first)
        assert answers(found, "Fur", "Gold") == [answer]


async def test_a_source_is_left_out_or_asked_besides_as_the_caller_says(outside: Gateways) -> None:
    place = ("base", STRANGER, "1")
    shown, gold = TraitList((Trait("Status", "Unrevealed"),)), TraitList((Trait("Fur", "Gold"),))
    told = replace(outside, opensea=Lists(shown), metadata=Lists(gold))
    (first,) = (await traits.fetch(told, [place])).values()
    assert isinstance(first, TokenTraits)
    assert first.sources == {FROM_OPENSEA}
    (other,) = (await traits.fetch(told, [place], apart_from={place: first.sources})).values()
    assert isinstance(other, TokenTraits)
    assert (other.sources, other.traits) == ({FROM_METADATA}, gold.found)
    (both,) = (await traits.fetch(told, [place], every_source=True)).values()
    assert isinstance(both, TokenTraits)
    assert (both.sources, matches(both, "fur", "gold")) == ({FROM_OPENSEA, FROM_METADATA}, YES)
    down = replace(told, metadata=Lists(ProviderDown("Token metadata", "HTTP 504")))
    (alone,) = (await traits.fetch(down, [place], apart_from={place: first.sources})).values()
    assert "504" in str(alone)
    (one,) = (await traits.fetch(down, [place], every_source=True)).values()
    assert isinstance(one, TokenTraits)
    assert one.sources == {FROM_OPENSEA}


class Linking:
    """Two indexes of assets that have read no metadata: both link to the same document, which this fetches too."""

    def __init__(self, link: str, document: bytes) -> None:
        self.link, self.document = link, document

    async def records(
        self, chain: str, contract: str, token_ids: Sequence[str], *, apart_from: str = ""
    ) -> dict[str, TokenRecord]:
        index = "index 2" if apart_from == "index 1" else "index 1"
        return dict.fromkeys(token_ids, TokenRecord(self.link, index=index))

    async def get(self, link: str) -> bytes:
        return self.document


@pytest.mark.parametrize(
    ("link", "alone"),
    [("https://host.example/1", True), ('data:application/json,{"name":"Cat","attributes":{"Fur":"Red"}}', False)],
)
async def test_a_document_that_two_indexes_link_to_is_one_source(outside: Gateways, link: str, alone: bool) -> None:
    place = ("solana", "x" * 32, "y" * 32)
    indexes: Any = Linking(link, b'{"name": "Cat", "attributes": {"Fur": "Red"}}')
    read = TokenMetadata({"solana": indexes}, indexes, ipfs_url="https://gw.example", arweave_url="https://ar.example")
    told = replace(outside, metadata=read)
    (first,) = (await traits.fetch(told, [place])).values()
    assert isinstance(first, TokenTraits)
    (other,) = (await traits.fetch(told, [place], apart_from={place: first.sources})).values()
    assert isinstance(other, TokenTraits)
    assert first.sources != other.sources, "the second index was asked"
    assert only_source(first, "fur", "gold") == first.source
    assert (only_source(replace(first, also=other), "fur", "gold") is not None) == alone


def test_two_sources_count_where_they_say_the_same_and_one_where_it_alone_says_so() -> None:
    gold, red = (Trait("Fur", one) for one in ("Gold", "Red"))
    both = TokenTraits((red,), FROM_OPENSEA, now(), also=TokenTraits((gold,), FROM_METADATA, now()))
    assert matches(both, "fur", "gold") is YES
    assert only_source(both, "fur", "gold") == FROM_METADATA
    assert (matches(both, "fur", "blue"), only_source(both, "fur", "blue")) == (NO, None)
    assert only_source(TokenTraits((), f"{FROM_OPENSEA}, {FROM_METADATA}", now()), "fur", "blue") is None
    assert only_source(TokenTraits((red,), FROM_OPENSEA, now()), "fur", "blue") == FROM_OPENSEA
