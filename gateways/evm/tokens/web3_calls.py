"""Calls to one node by web3.py, with its exceptions turned into ours. Imported when the first call is made."""

import asyncio
from collections.abc import Awaitable
from typing import Any, cast

import orjson
from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout, TCPConnector
from eth_typing import ChecksumAddress
from web3 import AsyncHTTPProvider, AsyncWeb3
from web3.exceptions import BadFunctionCallOutput, ContractLogicError, Web3Exception, Web3RPCError

from gateways.evm.rpc.errors import Reverted, http_fault, refusal_in
from gateways.evm.rpc.node import Node
from gateways.transport.errors import ProviderConfused, ProviderDown, no_answer


class Web3Calls:
    """Reads code and makes calls through one node."""

    def __init__(self, node: Node, request_seconds: float) -> None:
        self._node = node
        self._timeout = ClientTimeout(total=request_seconds)
        self._web3: Any = None
        self._session: ClientSession | None = None
        self._connecting = asyncio.Lock()
        """Held while connecting, which waits: concurrent calls must not make a session each."""

    async def close(self) -> None:
        """Close the connections."""
        async with self._connecting:
            if self._session is not None:
                await self._session.close()
                self._session = self._web3 = None

    async def code(self, address: str) -> bytes:
        """Return the code at an address (eth_getCode)."""
        return await self._turned(self._code(address))

    async def call(self, to: str, data: bytes) -> bytes:
        """Return what a call returns (eth_call). Raises Reverted when the contract reverts."""
        return await self._turned(self._call(to, data))

    async def _code(self, address: str) -> bytes:
        return bytes(await (await self._connected()).eth.get_code(_checksummed(address)))

    async def _call(self, to: str, data: bytes) -> bytes:
        asked = {"to": _checksummed(to), "data": "0x" + data.hex()}
        # Never CCIP-Read: a contract's OffchainLookup would have us fetch addresses of its choice.
        return bytes(await (await self._connected()).eth.call(asked, ccip_read_enabled=False))

    async def _turned(self, asked: Awaitable[bytes]) -> bytes:
        name = self._node.name
        try:
            return await asked
        except (ContractLogicError, BadFunctionCallOutput):
            raise Reverted(name, "the contract reverted", status=200) from None
        except Web3RPCError as fault:
            error = cast("dict[str, object]", fault.rpc_response or {}).get("error", "")
            raise refusal_in(error, name, self._node.url) from None
        except (ClientError, TimeoutError) as fault:
            raise ProviderDown(name, no_answer(fault)) from None
        except (Web3Exception, ValueError, TypeError, KeyError, AttributeError) as fault:
            raise ProviderConfused(name, f"the answer makes no sense ({type(fault).__name__})") from None

    async def _check(self, answer: ClientResponse) -> None:
        """Raise the error in an answer of another status than 200, as `Node` does: web3.py reads only the status."""
        if answer.status == 200:
            return
        try:
            said = cast("object", orjson.loads(await answer.read()))
        except orjson.JSONDecodeError:
            said = None
        raise http_fault(self._node.name, self._node.url, answer.status, answer.headers, said)

    async def _connected(self) -> Any:
        async with self._connecting:
            if self._web3 is None:
                # A node must not choose whom we contact, so its redirects are not followed.
                options = {"timeout": self._timeout, "allow_redirects": False}
                provider = AsyncHTTPProvider(self._node.url, request_kwargs=options, exception_retry_configuration=None)
                provider.global_ccip_read_enabled = False
                if self._session is None:  # a call that connected may have been cancelled
                    # web3.py's own session opens a connection for each request (docs/facts.md#web3py-connections).
                    self._session = ClientSession(raise_for_status=self._check, connector=TCPConnector())
                await provider.cache_async_session(self._session)
                self._web3 = AsyncWeb3(provider, middleware=[])
            return self._web3


def _checksummed(address: str) -> ChecksumAddress:
    return AsyncWeb3.to_checksum_address(address)
