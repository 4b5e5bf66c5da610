"""What a contract says about itself, by web3.py: its standard, its name, and its decimals if it is a coin."""

import secrets
import sys
from hashlib import sha256
from typing import Any, Literal, cast

from aiohttp import ClientError, ClientResponseError, ClientSession, ClientTimeout, TCPConnector
from eth_typing import ChecksumAddress
from web3 import AsyncHTTPProvider, AsyncWeb3
from web3.exceptions import BadFunctionCallOutput, ContractLogicError, Web3Exception, Web3RPCError

from gateways.chains.coin_facts import CoinFacts
from gateways.evm.rpc.errors import Reverted, rpc_error
from gateways.evm.rpc.node import Node
from gateways.evm.rpc.special_addresses import SHA256, UNUSED
from gateways.transport.errors import ProviderBusy, ProviderConfused, ProviderDown, ProviderError
from gateways.transport.plain_text import plain

# web3 brings py_ecc, which lets Python recurse 100,000 deep when it is imported. At that depth a stranger's nested JSON
# overflows the C stack and ends the process, where Python's own limit raises RecursionError.
sys.setrecursionlimit(1_000)

Standard = Literal["ERC721", "ERC721Enumerable", "ERC1155", "balanceOf", "Solana", "none"]
"""`balanceOf`: it names no standard, and answers how many tokens a wallet has; `none`: there is no contract there."""

# Interface ids and selectors: docs/facts.md#token-standards.
SUPPORTS = bytes.fromhex("01ffc9a7")
ERC165, NEVER = bytes.fromhex("01ffc9a7"), bytes.fromhex("ffffffff")
ERC721, ENUMERABLE, ERC1155 = bytes.fromhex("80ac58cd"), bytes.fromhex("780e9d63"), bytes.fromhex("d9b67a26")
NAME, SYMBOL = bytes.fromhex("06fdde03"), bytes.fromhex("95d89b41")
DECIMALS, TOTAL_SUPPLY = bytes.fromhex("313ce567"), bytes.fromhex("18160ddd")
# What collections from before ERC-165 answer, and what only coins do: docs/facts.md#contracts-without-erc-165.
BALANCE_OF, ALLOWANCE = bytes.fromhex("70a08231"), bytes.fromhex("dd62ed3e")
SOMEBODY = bytes(12) + bytes.fromhex(UNUSED[2:])
"""An owner, as an argument."""
LONGEST_NAME = 200


class ContractReader:
    """Asks contracts through one node. The node must have proved itself first (`Node.head`)."""

    def __init__(self, node: Node, request_seconds: float) -> None:
        self._node = node
        self._timeout = ClientTimeout(total=request_seconds)
        self._web3: Any = None
        self._session: ClientSession | None = None

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = self._web3 = None

    async def standard(self, contract: str) -> Standard | None:
        """The contract's standard by ERC-165, or by what it answers; None for one that is no collection of ours."""
        code = await self._ask("get_code", contract)
        if not code:
            await self._has_code_somewhere()
            return "none"
        if not await self._supports(contract, ERC165) or await self._supports(contract, NEVER):
            counts = await self._counts_tokens(contract)
            await self._answers_what_is_known()
            return "balanceOf" if counts else None
        if await self._supports(contract, ERC1155):
            return "ERC1155"
        if await self._supports(contract, ERC721):
            return "ERC721Enumerable" if await self._supports(contract, ENUMERABLE) else "ERC721"
        return None

    async def name(self, contract: str) -> str | None:
        """The contract's name() as one line of printable text, at most 200 characters; None when it has none."""
        return await self._text(contract, NAME)

    async def coin(self, contract: str) -> CoinFacts | None:
        """What the contract says of itself as a coin; None when there is no contract."""
        if not await self._ask("get_code", contract):
            await self._has_code_somewhere()
            return None
        name, symbol = await self._text(contract, NAME), await self._text(contract, SYMBOL)
        decimals = await self._number(contract, DECIMALS)
        if decimals == 0 and not name and not symbol and not await self._number(contract, TOTAL_SUPPLY):
            # Nothing but zeros is also what a node answers that answers everything with zeros.
            raise ProviderConfused(self._node.name, f"it has nothing but zeros to say of {contract}")
        return CoinFacts(name or "", symbol or "", decimals)

    async def _text(self, contract: str, selector: bytes) -> str | None:
        try:
            said = await self._ask("call", {"to": contract, "data": "0x" + selector.hex()})
        except Reverted:
            return None
        return plain(_text(said).replace("\ufffd", ""), LONGEST_NAME) or None

    async def _supports(self, contract: str, interface: bytes) -> bool:
        return await self._number(contract, SUPPORTS + interface.ljust(32, b"\0"), longer=True) == 1

    async def _counts_tokens(self, contract: str) -> bool:
        """Whether it answers `balanceOf` and is no coin: a coin also answers `allowance(address,address)`."""
        if await self._number(contract, BALANCE_OF + SOMEBODY) is None:
            return False
        return await self._number(contract, ALLOWANCE + SOMEBODY + SOMEBODY, longer=True) is None

    async def _number(self, contract: str, data: bytes, *, longer: bool = False) -> int | None:
        """One number, exactly as long as the ABI has it, or with `longer` at least so long; else None."""
        try:
            said = await self._ask("call", {"to": contract, "data": "0x" + data.hex()})
        except Reverted:
            return None
        return int.from_bytes(said[:32], "big") if len(said) == 32 or (longer and len(said) > 32) else None

    async def _answers_what_is_known(self) -> None:
        """Raise ProviderConfused for a node that does not run calls.

        One that answers zeros to everything makes a contract look as if it supported nothing and knew every owner.
        """
        nonce = secrets.token_bytes(32)
        try:
            said = await self._ask("call", {"to": SHA256, "data": "0x" + nonce.hex()})
        except Reverted:
            said = b""
        if said != sha256(nonce).digest():
            raise ProviderConfused(self._node.name, "it does not answer what is known")

    async def _has_code_somewhere(self) -> None:
        """A node that finds no code even where some is known to be must not make a collection vanish."""
        known = [address for address in (self._node.chain.multicall3, self._node.chain.delegates) if address]
        for address in known:
            if await self._ask("get_code", address):
                return
        raise ProviderConfused(self._node.name, "it knows no contract at all")

    async def _ask(self, what: Literal["get_code", "call"], asked: Any) -> bytes:
        """One call of web3.py's, its ways to fail turned into ours."""
        name = self._node.name
        try:
            web3 = await self._connected()
            if what == "get_code":
                return bytes(await web3.eth.get_code(_checksummed(asked)))
            asked = {"to": _checksummed(asked["to"]), "data": asked["data"]}
            # Never CCIP-Read: a contract's OffchainLookup would have us fetch addresses of its choice.
            return bytes(await web3.eth.call(asked, ccip_read_enabled=False))
        except (ContractLogicError, BadFunctionCallOutput):
            raise Reverted(name, "the contract reverted", status=200) from None
        except Web3RPCError as fault:
            raise self._rpc_fault(fault) from None
        except ClientResponseError as fault:
            if fault.status == 429:
                raise ProviderBusy(name, "too many requests") from None
            raise ProviderDown(name, f"HTTP {fault.status}") from None
        except (ClientError, TimeoutError) as fault:
            raise ProviderDown(name, f"no answer ({type(fault).__name__})") from None
        except (Web3Exception, ValueError, TypeError, KeyError, AttributeError) as fault:
            raise ProviderConfused(name, f"the answer makes no sense ({type(fault).__name__})") from None

    def _rpc_fault(self, fault: Web3RPCError) -> ProviderError:
        answer = cast("dict[str, Any] | None", fault.rpc_response)
        error = answer.get("error") if answer else None
        fields = cast("dict[str, Any]", error) if isinstance(error, dict) else {}
        code = fields.get("code")
        code = code if isinstance(code, int) else 0
        return rpc_error(self._node.name, code, str(fields.get("message", "")), fields.get("data"))

    async def _connected(self) -> Any:
        if self._web3 is None:
            provider = AsyncHTTPProvider(
                self._node.url, request_kwargs={"timeout": self._timeout}, exception_retry_configuration=None
            )
            provider.global_ccip_read_enabled = False
            # web3.py's own session opens a connection for each request (docs/facts.md#web3py-connections).
            self._session = ClientSession(raise_for_status=True, connector=TCPConnector())
            await provider.cache_async_session(self._session)
            self._web3 = AsyncWeb3(provider, middleware=[])
        return self._web3


def _checksummed(address: str) -> ChecksumAddress:
    return AsyncWeb3.to_checksum_address(address)


def _text(said: bytes) -> str:
    """An ABI string; or bytes32, which some old contracts return instead."""
    if len(said) == 32:
        return said.rstrip(b"\0").decode("utf-8", "replace")
    offset = int.from_bytes(said[:32], "big")
    size = int.from_bytes(said[offset : offset + 32], "big") if offset + 32 <= len(said) else 0
    return said[offset + 32 : offset + 32 + min(size, 4 * LONGEST_NAME)].decode("utf-8", "replace")
