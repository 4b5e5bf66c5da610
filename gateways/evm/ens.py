"""ENS: the wallet that a name stands for, and the name of a wallet, both by Ethereum's universal resolver."""

from collections.abc import Sequence
from typing import cast

import orjson
from ens.exceptions import ENSValidationError, InvalidName  # pyright: ignore[reportMissingTypeStubs]
from ens.utils import dns_encode_name, normal_name_to_hash, normalize_name  # pyright: ignore[reportMissingTypeStubs]
from eth_abi.abi import decode, encode
from eth_abi.exceptions import DecodingError

from gateways.evm.rpc.errors import Reverted
from gateways.evm.rpc.node import Node, binary, patiently
from gateways.evm.rpc.pool import NodePool
from gateways.transport.errors import NotThere, ProviderConfused, ProviderDown, ProviderError
from gateways.transport.safe_fetch import LONGEST_LINK, Fetcher

# Addresses, selectors and errors: docs/facts.md#ens.
ETHEREUM = "ethereum"
UNIVERSAL_RESOLVER = "0xeeeeeeee14d718c2b47d9923deab1335e144eeee"
RESOLVE, REVERSE, ADDRESS_OF = (bytes.fromhex(selector) for selector in ("9061b923", "5d78a217", "3b3b57de"))
COIN_ETHEREUM = 60
OFFCHAIN_LOOKUP = bytes.fromhex("556f1830")
HTTP_ERROR = bytes.fromhex("01800152")
NO_RECORD = frozenset(bytes.fromhex(selector) for selector in ("77209fe8", "1e9535f2", "7b1c461b", "95c0c752"))
"""ResolverNotFound, ResolverNotContract, UnsupportedResolverProfile, ResolverError."""
MISMATCH = bytes.fromhex("ef9c03ce")
"""ReverseAddressMismatch: a wallet calls itself by somebody else's name."""
MOST_LOOKUPS, MOST_SERVICES = 3, 4
LARGEST_LOOKUP = 100_000
LARGEST_REQUEST = 64 * 1024
"""The most bytes of a contract's request for a lookup. Its parts may overlap, and then take the square of its size."""
LONGEST_NAME = 255


class NameInvalid(ValueError):
    """The text is not a valid name (ENSIP-15), or only looks like another name."""


class NameOffchain(ProviderError):
    """A service outside the chain keeps the name, and none of its addresses may be asked or gives an answer."""


class EnsNames:
    """The directory of ENS names. A failure is a ProviderError, never "no such name".

    Names that are kept elsewhere are fetched as EIP-3668 describes, and only by the guarded client.
    """

    def __init__(self, pool: NodePool, fetching: Fetcher) -> None:
        self._pool, self._fetching = pool, fetching

    async def resolve(self, name: str) -> tuple[str, str]:
        """Return the name in its normal form and the wallet that it stands for, in lower case.

        Raises NameInvalid for a text that is not a name, and NameOffchain, NotThere or another ProviderError where the
        name leads to no wallet. NotThere is raised only when every node says so.
        """
        normal = _normal(name)
        try:
            wire, node_hash = bytes(dns_encode_name(normal)), bytes(normal_name_to_hash(normal))
        except (ENSValidationError, InvalidName) as fault:
            raise NameInvalid(str(fault)) from None
        data = RESOLVE + encode(["bytes", "bytes"], [wire, ADDRESS_OF + node_hash])

        async def ask(node: Node) -> str:
            (record, _) = _decoded(node, ["bytes", "address"], await self._call(node, data))
            if len(cast("bytes", record)) != 32:
                raise ProviderConfused(node.name, "the record of the name is not an address")
            address = "0x" + cast("bytes", record)[-20:].hex()
            if int(address, 16) == 0:
                raise NotThere(node.name, "the name has no address")
            return address

        return normal, await self._pool.first(ETHEREUM, ask)

    async def primary(self, address: str) -> str | None:
        """Return the wallet's name, if that name stands for this very wallet; None otherwise.

        The resolver verifies that the name leads to the wallet. A name that is not in its normal form is not returned.
        """
        data = REVERSE + encode(["bytes", "uint256"], [bytes.fromhex(address[2:]), COIN_ETHEREUM])

        async def ask(node: Node) -> str | None:
            try:
                (said, _, _) = _decoded(node, ["string", "address", "address"], await self._call(node, data))
            except NotThere:
                return None
            name = cast("str", said)
            if len(name) > LONGEST_NAME:
                return None
            try:
                return name if name and _normal(name) == name else None
            except NameInvalid:
                return None

        return await self._pool.first(ETHEREUM, ask)

    async def _call(self, node: Node, data: bytes) -> bytes:
        """Return the universal resolver's answer at the head, after the lookups that it asks for (CCIP-Read)."""
        block = hex((await node.head()).block)
        for _ in range(MOST_LOOKUPS + 1):
            try:
                asked = {"to": UNIVERSAL_RESOLVER, "data": "0x" + data.hex()}
                return binary(node.name, await patiently(node, "eth_call", (asked, block)))
            except Reverted as fault:
                selector, body = fault.data[:4], fault.data[4:]
                if selector in NO_RECORD or selector == MISMATCH:
                    raise NotThere(node.name, "there is no such record") from None
                if selector == HTTP_ERROR:
                    raise ProviderDown("ENS", "the service that keeps the name does not answer") from None
                if selector != OFFCHAIN_LOOKUP:
                    raise
                data = await self._looked_up(node, body)
        raise NameOffchain("ENS", "the name leads from one service to the next")

    async def _looked_up(self, node: Node, body: bytes) -> bytes:
        """Return the call data of the callback, with the answer of a service that the contract names (EIP-3668)."""
        if len(body) > LARGEST_REQUEST:
            raise NameOffchain("ENS", "the request for a lookup is too large")
        sender, urls, asked, callback, extra = _decoded(node, ["address", "string[]", "bytes", "bytes4", "bytes"], body)
        if cast("str", sender).lower() != UNIVERSAL_RESOLVER:
            raise ProviderConfused(node.name, "a lookup for another contract than the one that was asked")
        for url in cast("Sequence[str]", urls)[:MOST_SERVICES]:
            try:
                response = await self._fetched(url, cast("bytes", asked))
            except ProviderError:
                continue
            return cast("bytes", callback) + encode(["bytes", "bytes"], [response, extra])
        raise NameOffchain("ENS", "no service that keeps the name could be asked")

    async def _fetched(self, url: str, asked: bytes) -> bytes:
        data = "0x" + asked.hex()
        link = url.replace("{sender}", UNIVERSAL_RESOLVER)
        if "{data}" in url:
            # Measured first: a link can consist of such places, and be thousands of times as long as all data.
            if len(link) + link.count("{data}") * len(data) > LONGEST_LINK:
                raise NameOffchain("ENS", "the link of a lookup is too long")
            link = link.replace("{data}", data)
            said = await self._fetching.get(link, largest=LARGEST_LOOKUP)
        else:
            body = orjson.dumps({"data": data, "sender": UNIVERSAL_RESOLVER})
            said = await self._fetching.post(link, body, largest=LARGEST_LOOKUP)
        try:
            answer = cast("object", orjson.loads(said))
        except orjson.JSONDecodeError:
            raise ProviderConfused("ENS", "the service answered no JSON") from None
        return binary("ENS", cast("dict[str, object]", answer).get("data") if isinstance(answer, dict) else None)


def _normal(name: str) -> str:
    try:
        normal = normalize_name(name.strip())
    except InvalidName as fault:
        raise NameInvalid(str(fault)) from None
    if "." not in normal:
        raise NameInvalid("a name has a dot")
    return normal


def _decoded(node: Node, types: list[str], said: bytes) -> tuple[object, ...]:
    try:
        return cast("tuple[object, ...]", decode(types, said))
    except (DecodingError, UnicodeDecodeError, OverflowError):
        raise ProviderConfused(node.name, "the universal resolver's answer makes no sense") from None
