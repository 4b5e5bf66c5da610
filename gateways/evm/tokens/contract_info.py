"""What a contract says about itself: its standard, its name, and its decimals if it is a coin."""

import asyncio
import importlib
import secrets
import sys
from hashlib import sha256
from typing import TYPE_CHECKING, Literal

from gateways.chains.coin_facts import CoinFacts
from gateways.evm.rpc.errors import Reverted, TooMuch
from gateways.evm.rpc.node import Node
from gateways.evm.rpc.special_addresses import SHA256, UNUSED
from gateways.transport.errors import ProviderConfused
from gateways.transport.plain_text import plain

if TYPE_CHECKING:
    from gateways.evm.tokens.web3_calls import Web3Calls

# web3 depends on py_ecc, whose import lets Python recurse 100,000 deep. At that depth a stranger's nested JSON
# overflows the C stack and ends the process, where Python's own limit raises RecursionError. py_ecc is imported here
# and not with web3, so that the limit is never higher while strangers are served.
importlib.import_module("py_ecc")
sys.setrecursionlimit(1_000)

Standard = Literal["ERC721", "ERC721Enumerable", "ERC1155", "balanceOf", "Solana", "none"]
"""`balanceOf`: it names no standard, and answers how many tokens a wallet has; `none`: there is no contract there."""

# Interface ids and selectors: docs/facts.md#token-standards.
SUPPORTS = bytes.fromhex("01ffc9a7")
ERC165, NEVER = bytes.fromhex("01ffc9a7"), bytes.fromhex("ffffffff")
ERC721, ENUMERABLE, ERC1155 = bytes.fromhex("80ac58cd"), bytes.fromhex("780e9d63"), bytes.fromhex("d9b67a26")
NAME, SYMBOL = bytes.fromhex("06fdde03"), bytes.fromhex("95d89b41")
DECIMALS, TOTAL_SUPPLY = bytes.fromhex("313ce567"), bytes.fromhex("18160ddd")
# What collections from before ERC-165 answer, and what only coins answer: docs/facts.md#contracts-without-erc-165.
BALANCE_OF, ALLOWANCE = bytes.fromhex("70a08231"), bytes.fromhex("dd62ed3e")
SOMEBODY = bytes(12) + bytes.fromhex(UNUSED[2:])
"""An owner, as an argument."""
LONGEST_NAME = 200


class ContractReader:
    """Asks contracts through one node. The node must have been checked first (`Node.head`)."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._calls: Web3Calls | None = None

    async def standard(self, contract: str) -> Standard | None:
        """Return the contract's standard by ERC-165, or by its answers; None if it is not a collection we support."""
        code = await self._code(contract)
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
            if await self._counts_units(contract):
                return None
            return "ERC721Enumerable" if await self._supports(contract, ENUMERABLE) else "ERC721"
        return None

    async def name(self, contract: str) -> str | None:
        """Return the contract's name() as one line of printable text, at most 200 characters; None when it has none."""
        return await self._text(contract, NAME)

    async def coin(self, contract: str) -> CoinFacts | None:
        """Return what the contract states as a coin; None when there is no contract."""
        if not await self._code(contract):
            await self._has_code_somewhere()
            return None
        name, symbol = await self._text(contract, NAME), await self._text(contract, SYMBOL)
        decimals = await self._number(contract, DECIMALS)
        if decimals == 0 and not name and not symbol and not await self._number(contract, TOTAL_SUPPLY):
            # A node that answers every call with zeros would give the same answers.
            raise ProviderConfused(self._node.name, f"it has nothing but zeros to say of {contract}")
        return CoinFacts(name or "", symbol or "", decimals)

    async def _text(self, contract: str, selector: bytes) -> str | None:
        try:
            said = await self._call(contract, selector)
        except Reverted:
            return None
        return plain(_text(said).replace("\ufffd", ""), LONGEST_NAME) or None

    async def _supports(self, contract: str, interface: bytes) -> bool:
        return await self._number(contract, SUPPORTS + interface.ljust(32, b"\0"), longer=True) == 1

    async def _counts_tokens(self, contract: str) -> bool:
        """Return whether it answers `balanceOf` and is not a coin: a coin also answers `allowance(address,address)`."""
        if await self._number(contract, BALANCE_OF + SOMEBODY) is None:
            return False
        return await self._number(contract, ALLOWANCE + SOMEBODY + SOMEBODY, longer=True) is None

    async def _counts_units(self, contract: str) -> bool:
        """Return whether it claims to be a collection, but is a coin too, as hybrids (ERC-404) are.

        Its `balanceOf` then counts the coin's smallest units: a fraction of a token would look like many tokens.
        """
        try:
            decimals = await self._number(contract, DECIMALS)
            if decimals is None or not 0 < decimals < 256:
                return False
            return await self._number(contract, ALLOWANCE + SOMEBODY + SOMEBODY, longer=True) is not None
        except TooMuch:
            # A contract of an early compiler burns all gas where it lacks a function; a coin answers with little.
            return False

    async def _number(self, contract: str, data: bytes, *, longer: bool = False) -> int | None:
        """Return the answer as a number if it has exactly 32 bytes, or with `longer` at least 32; otherwise None."""
        try:
            said = await self._call(contract, data)
        except Reverted:
            return None
        return int.from_bytes(said[:32], "big") if len(said) == 32 or (longer and len(said) > 32) else None

    async def _answers_what_is_known(self) -> None:
        """Raise ProviderConfused for a node that does not run calls.

        One that answers zeros to everything makes a contract look as if it supported nothing and knew every owner.
        """
        nonce = secrets.token_bytes(32)
        try:
            said = await self._call(SHA256, nonce)
        except Reverted:
            said = b""
        if said != sha256(nonce).digest():
            raise ProviderConfused(self._node.name, "it does not answer what is known")

    async def _has_code_somewhere(self) -> None:
        """Raise ProviderConfused for a node that finds no code even where some is known to be.

        Such a node must not make a collection look as if it were gone.
        """
        known = [address for address in (self._node.chain.multicall3, self._node.chain.delegates) if address]
        for address in known:
            if await self._code(address):
                return
        raise ProviderConfused(self._node.name, "it knows no contract at all")

    async def _code(self, address: str) -> bytes:
        return await (await self._by_web3()).code(address)

    async def _call(self, to: str, data: bytes) -> bytes:
        return await (await self._by_web3()).call(to, data)

    async def _by_web3(self) -> "Web3Calls":
        if self._calls is None:
            # Importing web3.py takes a second of processor time, and few processes ever ask a contract about itself.
            made = await asyncio.to_thread(_calls, self._node)
            self._calls = self._calls or made
        return self._calls


def _calls(node: Node) -> "Web3Calls":
    from gateways.evm.tokens.web3_calls import Web3Calls

    return Web3Calls(node)


def _text(said: bytes) -> str:
    """Return the text in an ABI string, or in the bytes32 that some old contracts return instead."""
    if len(said) == 32:
        return said.rstrip(b"\0").decode("utf-8", "replace")
    offset = int.from_bytes(said[:32], "big")
    size = int.from_bytes(said[offset : offset + 32], "big") if offset + 32 <= len(said) else 0
    return said[offset + 32 : offset + 32 + min(size, 4 * LONGEST_NAME)].decode("utf-8", "replace")
