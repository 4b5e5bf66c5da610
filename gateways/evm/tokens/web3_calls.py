"""Calls to one node by web3.py, with its exceptions turned into ours. Imported when the first call is made."""

from collections.abc import Awaitable
from typing import Any

from eth_typing import ChecksumAddress
from web3 import AsyncWeb3
from web3.exceptions import Web3Exception
from web3.providers.async_base import AsyncBaseProvider
from web3.types import RPCEndpoint, RPCResponse

from gateways.evm.rpc.node import Node, binary
from gateways.transport.errors import ProviderConfused


class _NodeProvider(AsyncBaseProvider):
    """A provider of web3.py that asks our own client of the node.

    web3.py's own provider reads answers of any size (docs/facts.md#web3py-answers).
    """

    # A contract's OffchainLookup would have us fetch addresses of its choice (CCIP-Read).
    global_ccip_read_enabled = False

    def __init__(self, node: Node) -> None:
        super().__init__()
        self._node = node

    async def make_request(self, method: RPCEndpoint, params: Any) -> RPCResponse:
        """Return the answer to one call, which must be data. Raises the ProviderError of the node."""
        # web3.py takes a number or a truth value for bytes too.
        said = binary(self._node.name, await self._node.call(method, params))
        return {"jsonrpc": "2.0", "id": 1, "result": "0x" + said.hex()}


class Web3Calls:
    """Reads code and makes calls through one node."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._web3: Any = AsyncWeb3(_NodeProvider(node), middleware=[])

    async def code(self, address: str) -> bytes:
        """Return the code at an address (eth_getCode)."""
        return await self._turned(self._web3.eth.get_code(_checksummed(address)))

    async def call(self, to: str, data: bytes) -> bytes:
        """Return what a call returns (eth_call). Raises Reverted when the contract reverts."""
        asked = {"to": _checksummed(to), "data": "0x" + data.hex()}
        return await self._turned(self._web3.eth.call(asked, ccip_read_enabled=False))

    async def _turned(self, asked: Awaitable[bytes]) -> bytes:
        try:
            return bytes(await asked)
        except (Web3Exception, ValueError, TypeError, KeyError, AttributeError) as fault:
            raise ProviderConfused(self._node.name, f"the answer makes no sense ({type(fault).__name__})") from None


def _checksummed(address: str) -> ChecksumAddress:
    return AsyncWeb3.to_checksum_address(address)
