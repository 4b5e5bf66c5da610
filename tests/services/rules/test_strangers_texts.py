"""Texts that strangers wrote: for any text, each reader returns its answer or raises its own error, and no other."""

import csv
import io
import json
import os
import re
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gateways.chains import metadata_addresses, metadata_traits
from gateways.evm.log_decoding import Transfer, decode_logs, read_logs
from gateways.solana.das_assets import LONGEST_NAME, read_asset
from gateways.transport.errors import ProviderError
from gateways.transport.public_addresses import is_public
from gateways.transport.safe_fetch import LinkForbidden, _url
from services.collections import urls
from services.core import addresses, discord_text
from services.core.errors import FieldRefused
from services.rules import expression
from services.rules.expression import Expression
from services.rules.types import token_ids
from services.servers import csv_tables
from services.wallets import bio_proof

settings.register_profile("fuzz", max_examples=1_000, deadline=None)
settings.register_profile("usual", max_examples=20, deadline=None, derandomize=True, database=None)
USUAL = settings.get_profile(os.environ.get("HYPOTHESIS_PROFILE", "usual"))

PIECES = (
    "https://", "http://", "//", "opensea.io/", "magiceden.io/", "collection/", "assets/", "item/", "0x", "0X", "/",
    ".",
    "..", "%2e%2e", "%00", "\x00", "@", ":443", "#", "?", "[", "]", "::1", "127.0.0.1", "ipfs://", "ar://",
    "data:application/json;base64,", "Qm", "{id}", "vitalik.eth", "bonfida.sol", "1-5", "5-1", ",", "-", "–", "٣", "²",
    "9" * 80, "a" * 40, "1" * 44, "\ud800", "‮", "\n", " ", "holdfast:", "ada", "ß", "İ", "<script>",
)  # fmt: skip
texts = st.one_of(st.text(max_size=200), st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)


def shaped(*names: str) -> st.SearchStrategy[Any]:
    """Return a strategy for objects with the fields that a reader looks for, and any values."""
    return st.dictionaries(st.sampled_from(names), values, max_size=len(names)) | values


@USUAL
@given(texts)
def test_an_address_is_one_or_is_refused(text: str) -> None:
    try:
        family, address = addresses.parse(text)
    except addresses.AddressRefused:
        return
    assert family in {"evm", "solana"}
    assert addresses.parse(address) == (family, address), "what was read is read the same again"


@USUAL
@given(texts)
@example("https://[::1")
@example("https://opensea.io:99999/collection/a")
@example("https://opensea.io/collection/a")
@example("0x" + "aB" * 20)
@example("1" * 44)
def test_a_collections_page_is_one_or_is_refused(text: str) -> None:
    try:
        found = urls.read(text)
    except (urls.LinkRefused, addresses.AddressRefused):
        return
    (named,) = filter(None, (found.contract, found.slug, found.symbol, found.mint))
    assert named.strip() == named
    if found.contract is not None:
        assert addresses.parse(found.contract)[1] == found.contract
    assert urls.read(text) == found


@USUAL
@given(texts, st.sampled_from(["ethereum", "solana"]))
def test_token_ids_are_some_or_are_refused(text: str, chain: str) -> None:
    try:
        entries = token_ids.added((), text, chain)
    except FieldRefused:
        return
    for entry in entries if chain == "ethereum" else ():
        found = token_ids.bounds(entry)
        assert found is not None
        assert 0 <= found[0] <= found[1] <= token_ids.LARGEST
    assert token_ids.normal(entries, chain) == entries


@USUAL
@given(texts, texts)
def test_a_bio_without_the_code_and_the_marker_proves_nothing(bio: str, username: str) -> None:
    found = bio_proof.judge(bio, "holdfast-abcdefghjk", username)
    if "holdfast-abcdefghjk" not in bio.casefold():
        assert found is not bio_proof.Marker.CODE
    if "holdfast:" not in bio.casefold():
        assert found is not bio_proof.Marker.HANDLE


@USUAL
@given(shaped("all", "any", "not", "atLeast", "type", "chain", "contract", "minTokens", "trait", "tokenIds", "n", "of"))
def test_a_rules_tree_is_one_or_is_refused(document: Any) -> None:
    try:
        tree: Expression = expression.parse(document)
    except expression.ExpressionRefused:
        return
    assert expression.parse(expression.to_document(tree)) == tree


@USUAL
@given(shaped("name", "image", "attributes", "traits", "properties", "trait_type", "value", "display_type"))
def test_metadata_has_traits_or_is_none(document: Any) -> None:
    try:
        found = metadata_traits.of_metadata(document)
    except metadata_traits.NoMetadata:
        return
    assert len(found.found) <= metadata_traits.MOST_TRAITS
    for one in found.found:
        assert len(one.kind) <= metadata_traits.LONGEST_KIND
        assert not isinstance(one.value, str) or len(one.value) <= metadata_traits.LONGEST_VALUE
    json.dumps([one.value for one in found.found], allow_nan=False)


@USUAL
@given(texts)
def test_a_tokens_link_is_located_within_the_gateways_or_not_used(link: str) -> None:
    where = metadata_addresses.ContentGateways("https://ipfs.example", "https://arweave.example")
    try:
        found = metadata_addresses.located(link, where)
    except metadata_addresses.LinkUnusable:
        return
    if isinstance(found, str) and link.strip().lower().startswith(("ipfs:", "ar:")):
        assert found.startswith(("https://ipfs.example/ipfs/", "https://arweave.example/"))
        assert ".." not in found.split("/")


@USUAL
@given(texts)
@example("https://[::1")
@example("https://a\x00b/")
@example("https://" + "a" * 300)
def test_a_link_is_read_or_forbidden(link: str) -> None:
    try:
        assert _url(link).host
    except LinkForbidden:
        return


@USUAL
@given(st.ip_addresses().map(str) | texts)
def test_an_address_of_the_net_is_public_or_not(address: str) -> None:
    assert is_public(address) in {True, False}


def sent(**other: str) -> dict[str, Any]:
    """Return a transfer's log as a node writes it, with these fields replaced."""
    topics = ["0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"]
    topics += [other.get("sender", "0x" + "0" * 24 + "aA" * 20), "0x" + "0" * 24 + "b" * 40, "0x" + "0" * 63 + "1"]
    place = {"blockNumber": other.get("block", "0x1"), "blockHash": "0x" + "c" * 64, "removed": False}
    return {"address": "0x" + "Dd" * 20, "topics": topics, "data": "0x", **place}


@USUAL
@given(st.lists(shaped("topics", "data", "address", "blockNumber", "blockHash", "removed"), max_size=3) | values)
@example([sent(block="0x7")])
@example([sent(block="0xb")])
@example([sent(sender="0x" + "f" * 64)])
def test_logs_are_transfers_or_an_error_of_the_node(answer: Any) -> None:
    try:
        found = read_logs("Node 1", answer, 0, 10)
    except ProviderError:
        return
    assert len(found) <= len(answer)
    for one in found:
        assert 0 <= one.block <= 10
        assert one.contract == one.contract.lower()
        assert all(re.fullmatch("0x[0-9a-f]{40}", side) for side in (one.sender, one.receiver))
    assert answer != [sent(block="0x7")] or len(found) == 1


LOGS = (
    b'{"id": 1, "error": null, "result": [{"address": "0x7", "topics": ["0x1", "0x2", "0x3", "0x4"], '
    b'"blockNumber": "0x7", "blockHash": "0x7", "data": [1.5, {"\\u0041": "\xc3\x9f"}], "removed": false}]}'
)


@USUAL
@given(
    st.integers(0, len(LOGS)),
    st.integers(0, 9),
    st.binary(max_size=9) | texts.map(lambda one: one.encode("utf-8", "surrogatepass")),
)
@example(len(LOGS), 0, b"")
def test_an_answer_with_logs_is_decoded_or_no_json(at: int, left_out: int, put_in: bytes) -> None:
    content = LOGS[:at] + put_in + LOGS[at + left_out :]
    try:
        found = decode_logs(content)
    except json.JSONDecodeError:
        # Python's own parser accepts half a surrogate pair and numbers too large for a float, which are not JSON.
        if b"\\" not in put_in and b"e" not in put_in.lower():
            with pytest.raises(ValueError):
                json.loads(content.decode(), parse_constant=_no_number)
        return
    try:
        plain = orjson.loads(content)
    except json.JSONDecodeError:
        return  # the fault is in a field that is never read
    assert transfers(found) == transfers(plain)


def _no_number(name: str) -> None:
    raise ValueError(name)


def transfers(answer: Any) -> list[Transfer] | str:
    """Return the transfers in a decoded answer, or why it has none."""
    try:
        return read_logs("Node 1", answer.get("result") if isinstance(answer, dict) else answer, 0, 10)
    except ProviderError as fault:
        return str(fault)


@USUAL
@given(shaped("id", "interface", "ownership", "grouping", "burnt", "compression", "content", "supply", "token_info"))
@example({"id": "1", "interface": "V1_NFT", "ownership": {"owner": "2"}, "grouping": [], "burnt": False})
@example({"id": "1", "interface": "V1_NFT", "ownership": {}, "grouping": [], "burnt": 0})
def test_an_asset_is_one_or_an_error_of_the_index(item: Any) -> None:
    try:
        found = read_asset("Node 1", item)
    except ProviderError:
        return
    assert (found.id, found.interface, found.burnt) == (item["id"], item["interface"], item["burnt"])
    assert found.owner == (item["ownership"].get("owner") or "")
    assert isinstance(found.burnt, bool)
    assert len(found.name) <= LONGEST_NAME


@USUAL
@given(texts)
def test_no_text_of_others_is_markup_a_mention_or_a_link_in_discord(text: str) -> None:
    shown = discord_text.plain(text)
    assert "\n" not in shown
    assert not re.search(r"https?:/+", shown, re.I)
    bare = shown.replace("\\\\", "")
    for position, letter in enumerate(bare):
        if letter in "*_~`|[]<@":
            assert bare[position - 1] == "\\", shown


@USUAL
@given(st.lists(texts, min_size=1, max_size=4))
def test_no_cell_of_a_table_is_a_formula(cells: list[str]) -> None:
    line = csv_tables.table([cells])
    read = next(csv.reader(io.StringIO(line, newline="")))
    assert len(read) == len(cells)
    assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in read)


@pytest.mark.parametrize("text", ["\ud800", "\x00"])
def test_what_cannot_be_stored_is_no_address(text: str) -> None:
    with pytest.raises(addresses.AddressRefused):
        addresses.parse(f"0x{text}")
