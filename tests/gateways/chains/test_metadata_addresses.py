"""Metadata links in contracts: every readable form, and no other."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateways.chains.metadata_addresses import LONGEST_DOCUMENT, ContentGateways, LinkUnusable, located, with_id

PLACES = ContentGateways("https://gw.example/", "https://ar.example")
CID, V0 = (
    "bafybeihr7vi77syiup5o4avvzemhlp4v4nplpc23haderjcjkkzgah2a5u",
    "QmY4PDbfRsuwCvmJeY6NdzaRXFJhypgVwzNyDwin91dsM2",
)
TX = "PO6QTMV1xuQjWPCgZFe7wSuVtmtNGiK3zRM4jsEL4ao"
CAT = {"name": "Cat \u00e9", "attributes": []}
JSON = json.dumps(CAT, ensure_ascii=False)
PACKED = base64.b64encode(JSON.encode()).decode()


@pytest.mark.parametrize(
    ("link", "place"),
    [
        ("https://cats.example/1?x=1", "https://cats.example/1?x=1"),
        ("  HTTPS://cats.example/1\n", "HTTPS://cats.example/1"),
        ("http://cats.example/1", "http://cats.example/1"),
        (f"ipfs://{CID}/1", f"https://gw.example/ipfs/{CID}/1"),
        (f"IPFS://{CID}", f"https://gw.example/ipfs/{CID}"),
        (f"ipfs://ipfs/{V0}/a b/1.json?x=y", f"https://gw.example/ipfs/{V0}/a%20b/1.json?x=y"),
        (f"ipfs://{V0}/a%20b%23", f"https://gw.example/ipfs/{V0}/a%20b%23"),
        (f"ar://{TX}/1", f"https://ar.example/{TX}/1"),
        (f"ar://{TX}", f"https://ar.example/{TX}"),
    ],
)
def test_a_link_leads_to_where_the_document_can_be_fetched(link: str, place: str) -> None:
    assert located(link, PLACES) == place


@pytest.mark.parametrize(
    "link",
    [
        f"data:application/json;base64,{PACKED}",
        f"data:application/json;charset=utf-8;base64,{PACKED.rstrip('=')}",
        f"DATA:application/json;BASE64,{PACKED[:10]}\n{PACKED[10:].replace('=', '%3D')}",
        f"data:application/json,{JSON}",
        f"data:application/json;utf8,{JSON}",
        "data:application/json," + "".join(f"%{byte:02X}" for byte in JSON.encode()),
        JSON,
        f"  {JSON}",
    ],
)
def test_a_link_may_carry_the_document_itself(link: str) -> None:
    found = located(link, PLACES)
    assert isinstance(found, bytes)
    assert json.loads(found) == CAT


def test_what_is_no_escape_stays_as_it_is() -> None:
    assert located('data:application/json,{"name":"100% cat #1"}', PLACES) == b'{"name":"100% cat #1"}'


@pytest.mark.parametrize(
    "link",
    [
        "", "   ", "cat", "ftp://x/1", "file:///etc/passwd", "javascript:alert(1)", "ipfs://", "ipfs://short/1",
        f"ipfs://{CID}/../../admin", f"ipfs://{CID}/./x", "ipfs://evil.example/1", "ipfs://a@b/1", f"ipfs://ipfs/../{CID}",
        "ar://short", f"ar://{TX}/../x", "ar://evil.example", "data:application/json;base64", "data:",
        "data:application/json;base64,!!!", "data:application/json;base64,A",
        "data:application/json," + "x" * 1_000_001, "data:application/json;base64," + "A" * 2_000_001,
        "{" + "x" * 1_000_001,
        # A lone surrogate, which JSON allows and no encoding can represent.
        "data:,\ud800", "data:;base64,\udfff", '{"name": "\ud800"}', f"ipfs://{CID}/\ud800", "https://x.example/\ud800",
    ],
)  # fmt: skip
def test_anything_else_is_refused(link: str) -> None:
    with pytest.raises(LinkUnusable):
        located(link, PLACES)


def test_an_id_is_filled_in_as_64_hexadecimal_digits() -> None:
    assert with_id("https://x/{id}.json", 314592) == f"https://x/{'0' * 59}4cce0.json"
    assert with_id("ipfs://{id}/{id}", 2**256 - 1) == f"ipfs://{'f' * 64}/{'f' * 64}"
    assert with_id("https://x/1", 7) == "https://x/1"


@given(st.text(max_size=60), st.sampled_from(["", "ipfs://", "ar://", "data:", f"ipfs://{CID}/", f"ar://{TX}/"]))
def test_no_link_leads_out_of_its_gateway(text: str, begin: str) -> None:
    try:
        place = located(begin + text, PLACES)
    except LinkUnusable:
        return
    if isinstance(place, str) and not place.lower().startswith("http"):
        raise AssertionError(place)
    if isinstance(place, str) and begin.startswith(("ipfs", "ar")):
        assert place.startswith(("https://gw.example/ipfs/", "https://ar.example/"))
        assert "/../" not in place + "/"


def test_an_id_that_would_make_a_link_of_any_size_is_not_filled_in() -> None:
    """A contract's link of two megabytes may consist of places for the id, and would become 32 megabytes."""
    places = "{id}" * (LONGEST_DOCUMENT // 2)
    assert with_id(places, 1) == ""
    assert with_id(f"data:,{'a' * LONGEST_DOCUMENT}{{id}}", 1).endswith("a" + "1".zfill(64))
