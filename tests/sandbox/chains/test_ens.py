"""Ethereum names as other libraries request them: web3.py's own client, and the calls of viem and ethers."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from ens import AsyncENS
from ens.utils import dns_encode_name, normal_name_to_hash
from eth_abi.abi import decode, encode
from eth_utils.crypto import keccak
from web3 import AsyncHTTPProvider, AsyncWeb3

from sandbox.chains.names import OF_ETH, RESOLVER, UNIVERSAL

NOBODY = "0x" + "77" * 20
ADDR, ADDR_OF_COIN = bytes.fromhex("3b3b57de"), bytes.fromhex("f1cb7e06")
ETHEREUM, BASE = 60, 2147492101


def selector(form: str) -> bytes:
    return keccak(text=form)[:4]


class Names:
    """The node, the person with a name, and calls built by hand."""

    def __init__(self, url: str, http: httpx.AsyncClient, carol: str) -> None:
        self.url, self._http, self.carol = url, http, carol

    async def call(self, to: str, form: str, arguments: tuple[Any, ...], results: list[str]) -> tuple[Any, ...] | bytes:
        """Return a function's result, or the first four bytes of the error if it reverts."""
        types = form[form.index("(") + 1 : -1].split(",")
        asked = {"to": to, "data": "0x" + (selector(form) + encode(types, arguments)).hex()}
        body = {"jsonrpc": "2.0", "id": 1, "method": "eth_call", "params": [asked, "latest"]}
        said = (await self._http.post(self.url, json=body)).json()
        if "error" in said:
            return bytes.fromhex(said["error"]["data"][2:10])
        return tuple(decode(results, bytes.fromhex(said["result"][2:])))


@pytest.fixture
async def names(sandbox_url: str) -> AsyncIterator[Names]:
    async with httpx.AsyncClient(trust_env=False, timeout=20) as http:
        people = (await http.get(f"{sandbox_url}/control/world")).json()["users"]
        carol = next(one["wallets"]["evm"] for one in people if one["username"] == "carol")
        yield Names(f"{sandbox_url}/rpc/ethereum", http, carol)


async def test_web3_finds_the_address_and_the_name_and_null_for_what_is_not_there(names: Names) -> None:
    provider = AsyncHTTPProvider(names.url)
    web3 = AsyncWeb3(provider)
    directory = AsyncENS.from_web3(web3)
    try:
        assert await directory.address("carol.eth") == names.carol
        assert await directory.address("carol.eth", ETHEREUM) == names.carol
        assert await directory.name(web3.to_checksum_address(names.carol)) == "carol.eth"
        assert await directory.address("nobody-here.eth") is None
        assert await directory.address("nobody.example") is None
        assert await directory.name(web3.to_checksum_address(NOBODY)) is None
        assert await directory.get_text("carol.eth", "avatar") == ""
        found = await directory.resolver("carol.eth")
        assert found is not None
        assert found.address.lower() == RESOLVER
    finally:
        await provider.disconnect()


def resolving(name: str, selected: bytes = ADDR, *more: int) -> tuple[bytes, bytes]:
    node = bytes(normal_name_to_hash(name))
    return bytes(dns_encode_name(name)), selected + encode(["bytes32", *["uint256"] * len(more)], [node, *more])


GATEWAYS = ("x-batch-gateway:true",)


async def test_names_are_resolved_with_gateways_as_viem_asks(names: Names) -> None:
    form, results = "resolveWithGateways(bytes,bytes,string[])", ["bytes", "address"]
    said = await names.call(UNIVERSAL, form, (*resolving("carol.eth"), GATEWAYS), results)
    assert said == (encode(["address"], [names.carol]), RESOLVER)
    of_coin = resolving("carol.eth", ADDR_OF_COIN, ETHEREUM)
    said = await names.call(UNIVERSAL, form, (*of_coin, GATEWAYS), results)
    assert said == (encode(["bytes"], [bytes.fromhex(names.carol[2:])]), RESOLVER)
    said = await names.call(UNIVERSAL, form, (*resolving("carol.eth", ADDR_OF_COIN, BASE), GATEWAYS), results)
    assert said == (encode(["bytes"], [b""]), RESOLVER)
    for name, error in (
        ("nobody-here.eth", "ResolverError(bytes)"),
        ("sub.carol.eth", "ResolverNotFound(bytes)"),
        ("nobody.example", "ResolverNotFound(bytes)"),
    ):
        assert await names.call(UNIVERSAL, form, (*resolving(name), GATEWAYS), results) == selector(error)


async def test_addresses_are_looked_up_with_gateways_as_viem_asks(names: Names) -> None:
    form, results = "reverseWithGateways(bytes,uint256,string[])", ["string", "address", "address"]
    carol = bytes.fromhex(names.carol[2:])
    assert await names.call(UNIVERSAL, form, (carol, ETHEREUM, GATEWAYS), results) == ("carol.eth", RESOLVER, RESOLVER)
    nobody = bytes.fromhex(NOBODY[2:])
    assert await names.call(UNIVERSAL, form, (nobody, ETHEREUM, GATEWAYS), results) == selector(
        "ResolverNotFound(bytes)"
    )
    assert await names.call(UNIVERSAL, form, (b"", ETHEREUM, GATEWAYS), results) == selector("EmptyAddress()")


async def test_resolvers_are_required_and_asked_themselves_as_ethers_does(names: Names) -> None:
    form, info = "requireResolver(bytes)", ["(bytes,uint256,bytes32,address,bool)"]
    wire, node = bytes(dns_encode_name("carol.eth")), bytes(normal_name_to_hash("carol.eth"))
    assert await names.call(UNIVERSAL, form, (wire,), info) == ((wire, 0, node, RESOLVER, False),)
    assert await names.call(RESOLVER, "addr(bytes32)", (node,), ["address"]) == (names.carol.lower(),)
    other, under = bytes(dns_encode_name("nobody-here.eth")), bytes(normal_name_to_hash("nobody-here.eth"))
    # A missing name is answered by the resolver of all .eth names, which reports that it cannot be reached.
    assert await names.call(UNIVERSAL, form, (other,), info) == ((other, 12, under, OF_ETH, True),)
    said = await names.call(OF_ETH, "resolve(bytes,bytes)", (other, b""), ["bytes"])
    assert said == selector("UnreachableName(bytes)")
    nowhere = bytes(dns_encode_name("nobody.example"))
    assert await names.call(UNIVERSAL, form, (nowhere,), info) == selector("ResolverNotFound(bytes)")
    assert await names.call(UNIVERSAL, "findResolver(bytes)", (nowhere,), ["address", "bytes32", "uint256"]) == (
        "0x" + "00" * 20, bytes(normal_name_to_hash("nobody.example")), 0,
    )  # fmt: skip
