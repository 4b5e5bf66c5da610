"""Which collection a pasted text means."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateways.chains.catalogue import CHAINS
from services.collections.urls import (
    MAGIC_EDEN,
    OPENSEA,
    CollectionReference,
    LinkRefused,
    is_address,
    is_link,
    read,
    site,
)
from services.core.addresses import is_solana

CONTRACT = "0xbc4ca0eda7647a8ab7c2061c2e118a18a936f13d"
CHECKSUMMED = "0xBC4CA0EdA7647A8aB7C2061c2E118A18a936f13D"
ADDRESS, OTHER = "So11111111111111111111111111111111111111112", "J1S9H3QjnRtBbbuD4HjPV6RpRhwuk4zKbxsnCHuTgh9w"
LOCAL = (site(OPENSEA, "http://localhost:3210/opensea"), site(MAGIC_EDEN, "http://localhost:3210/magiceden"))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (CONTRACT, CollectionReference(contract=CONTRACT)),
        (f"  {CHECKSUMMED}\n", CollectionReference(contract=CONTRACT)),
        ("https://opensea.io/collection/mellow-cats", CollectionReference(slug="mellow-cats")),
        (
            "https://www.opensea.io/collection/Mellow-Cats/overview?tab=items#top",
            CollectionReference(slug="mellow-cats"),
        ),
        ("opensea.io/collection/mellow-cats/", CollectionReference(slug="mellow-cats")),
        ("HTTPS://OpenSea.IO/collection/mellow-cats", CollectionReference(slug="mellow-cats")),
        (f"https://opensea.io/item/ape_chain/{CONTRACT}/7", CollectionReference("apechain", CONTRACT)),
        (f"https://opensea.io/assets/base/{CHECKSUMMED}/7", CollectionReference("base", CONTRACT)),
        (f"https://opensea.io/assets/matic/{CONTRACT}", CollectionReference("polygon", CONTRACT)),
        (f"https://opensea.io/assets/{CONTRACT}/7", CollectionReference("ethereum", CONTRACT)),
        (f"https://magiceden.io/collections/apechain/{CONTRACT}", CollectionReference("apechain", CONTRACT)),
        (f"https://magiceden.us/collections/polygon/{CHECKSUMMED}?x=1", CollectionReference("polygon", CONTRACT)),
        ("https://magiceden.io/collections/ethereum/smol-brains", CollectionReference("ethereum", slug="smol-brains")),
        (f"https://magiceden.us/item-details/base/{CONTRACT}/7", CollectionReference("base", CONTRACT)),
        ("http://localhost:3210/opensea/collection/mellow-cats", CollectionReference(slug="mellow-cats")),
        (f"localhost:3210/opensea/item/base/{CONTRACT}/1", CollectionReference("base", CONTRACT)),
        (f"http://localhost:3210/magiceden/collections/base/{CONTRACT}", CollectionReference("base", CONTRACT)),
        (ADDRESS, CollectionReference("solana", ADDRESS)),
        (f" {ADDRESS}\n", CollectionReference("solana", ADDRESS)),
        (f"https://opensea.io/item/solana/{ADDRESS}", CollectionReference("solana", mint=ADDRESS)),
        (f"https://opensea.io/assets/solana/{ADDRESS}?x=1", CollectionReference("solana", mint=ADDRESS)),
        (f"http://localhost:3210/opensea/item/solana/{OTHER}/{ADDRESS}", CollectionReference("solana", mint=ADDRESS)),
        (
            "https://magiceden.io/marketplace/Okay_Bears?activeTab=items",
            CollectionReference("solana", symbol="Okay_Bears"),
        ),
        (f"https://magiceden.us/marketplace/{ADDRESS}", CollectionReference("solana", ADDRESS)),
        ("https://magiceden.io/collections/solana/okay_bears", CollectionReference("solana", symbol="okay_bears")),
        (f"https://magiceden.io/item-details/{ADDRESS}?name=x", CollectionReference("solana", mint=ADDRESS)),
        (f"https://magiceden.us/item-details/solana/{ADDRESS}", CollectionReference("solana", mint=ADDRESS)),
        ("http://localhost:3210/magiceden/marketplace/otters", CollectionReference("solana", symbol="otters")),
    ],
)
def test_every_form_of_an_address_or_page_is_understood(text: str, named: CollectionReference) -> None:
    assert read(text, LOCAL) == named


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("https://opensea.io/carol", "profile"),
        (f"https://opensea.io/{CONTRACT}", "profile"),
        ("https://opensea.io/carol.eth/galleries", "profile"),
        ("https://opensea.io/", "not a collection"),
        ("https://opensea.io/collection", "not a collection"),
        ("https://opensea.io/collection/..%2F..%2Faccounts", "names no collection"),
        ("https://magiceden.io/u/carol", "profile"),
        ("http://localhost:3210/magiceden/carol", "profile"),
        ("https://magiceden.io/marketplace", "profile"),
        ("https://magiceden.io/marketplace/..%2F..%2Fx", "names no collection"),
        ("https://magiceden.io/item-details/okay", "names no token"),
        (f"https://opensea.io/item/solana/{CONTRACT}", "names no token"),
        ("https://opensea.io/item/solana", "not a collection"),
        ("https://magiceden.io/", "not a collection"),
        ("https://evil.example/opensea.io/collection/x", "neither"),
        ("https://opensea.io.evil.example/collection/x", "neither"),
        ("https://opensea.io@evil.example/collection/x", "neither"),
        ("https://evil.example@opensea.io/collection/x", "neither"),
        ("https://testnets.opensea.io/collection/x", "neither"),
        ("https://opensea.io:8443/collection/x", "neither"),
        ("javascript://opensea.io/collection/x", "neither"),
        ("http://localhost:3210/magicedenish/collections/base/x", "neither"),
        ("http://[opensea.io/collection/x", "cannot be read"),
        (f"https://opensea.io/assets/base/{CONTRACT[:-1]}/1", "42 characters"),
        (CHECKSUMMED.replace("BC4CA", "Bc4CA"), "mistyped"),
        ("mellow cats", "Paste"),
        ("0x12", "42 characters"),
        ("x" * 600, "too long"),
    ],
)
def test_anything_else_is_refused_with_what_to_do(text: str, says: str) -> None:
    with pytest.raises(LinkRefused, match=says) as caught:
        read(text, LOCAL)
    assert re.fullmatch(r".+[.]", str(caught.value))


@pytest.mark.parametrize("name", ["ninth", "ninth_chain", "Ninth_Chain"])
def test_a_chain_of_a_file_is_known_by_its_key_and_by_openseas_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CHAINS, "ninth", replace(CHAINS["base"], key="ninth", opensea="ninth_chain"))
    assert read(f"https://opensea.io/assets/{name}/{CONTRACT}") == CollectionReference("ninth", CONTRACT)
    assert read(f"https://magiceden.io/collections/{name}/{CONTRACT}") == CollectionReference("ninth", CONTRACT)


def test_a_sandboxes_pages_count_only_where_it_is_known() -> None:
    with pytest.raises(LinkRefused, match="neither"):
        read("http://localhost:3210/opensea/collection/mellow-cats")


@pytest.mark.parametrize(
    ("text", "link"),
    [
        (CONTRACT, False), ("mellow", False), ("", False), ("opensea.io/collection/x", True),
        ("see magiceden.us", True), ("https://elsewhere.example", True), ("localhost:3210/opensea", True),
    ],
)  # fmt: skip
def test_a_link_is_told_from_an_address(text: str, link: bool) -> None:
    assert is_link(text, LOCAL) is link


@given(
    st.one_of(
        st.text(max_size=80),
        st.lists(st.text(max_size=12), max_size=5).map(lambda parts: "https://opensea.io/" + "/".join(parts)),
        st.lists(st.text(max_size=12), max_size=5).map(lambda parts: "magiceden.us/" + "/".join(parts)),
        st.text(max_size=30).map(lambda host: f"https://{host}/opensea.io/collection/cats"),
    )
)
def test_whatever_is_pasted_is_a_reference_in_its_one_form_or_refused(text: str) -> None:
    try:
        named = read(text, LOCAL)
    except LinkRefused:
        return
    assert [named.contract, named.slug, named.symbol, named.mint].count(None) == 3
    if named.contract is not None:
        assert re.fullmatch(r"0x[0-9a-f]{40}", named.contract) or (
            named.chain == "solana" and is_solana(named.contract)
        )
    if named.symbol is not None:
        assert "/" not in named.symbol
    if named.slug is not None:
        assert re.fullmatch(r"[a-z0-9][a-z0-9_-]*", named.slug)


@given(st.from_regex(r"[a-z0-9]{1,20}(\.[a-z]{2,5}){0,2}", fullmatch=True))
def test_no_other_host_counts_as_a_marketplace(host: str) -> None:
    try:
        read(f"https://{host}/collection/cats")
    except LinkRefused:
        return
    assert host == "opensea.io"


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        (CONTRACT, True), (CONTRACT[:-1], False), (CONTRACT + "0", False), ("a" * 31, False), ("a" * 32, True),
        ("a" * 44, True), ("a" * 45, False), ("a" * 31 + ".", False), ("é" * 32, False),
    ],
)  # fmt: skip
def test_an_address_is_told_by_its_length_and_look(text: str, whole: bool) -> None:
    assert is_address(text) is whole
