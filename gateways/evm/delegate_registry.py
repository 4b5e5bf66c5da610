"""delegate.xyz v2: which vaults let which wallets speak for them, and for how much of what they hold."""

import asyncio
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from gateways.chains.balance_sheet import packed
from gateways.chains.catalogue import CHAINS
from gateways.chains.read_point import NEWEST, ReadPoint
from gateways.evm.rpc.errors import NodeTimedOut, Reverted, TooMuch
from gateways.evm.rpc.node import Head, Node, binary
from gateways.evm.rpc.pool import NodePool
from gateways.transport import question_time
from gateways.transport.chunks import chunks
from gateways.transport.errors import ProviderConfused, ProviderError
from locales import N_

# Selector, order of the fields and numbers of the kinds: docs/facts.md#delegate-registry.
GET_INCOMING = bytes.fromhex("42f87c25") + bytes(12)
WORD, FIELDS = 32, 7
BATCH = 50
KEPT_FOR_THE_ANSWER = 0.5
NOT_IN_TIME = N_("it was not read in time")
Kind = Literal["all", "contract", "token"]
_KINDS: dict[int, Kind] = {1: "all", 2: "contract", 3: "token", 5: "token"}
_ERC20, _ERC1155 = 4, 5
CHANGED = (
    "0xda3ef6410e30373a9137f83f9781a8129962b6882532b7c229de2e39de423227",
    "0x021be15e24de4afc43cfb5d0ba95ca38e0783571e05c12bbe6aece8842ae82df",
    "0x15e7a1bdcd507dd632d797d38e60cc5a9c0749b9a63097a215c4d006126825c6",
    "0x27ab1adc9bca76301ed7a691320766dfa4b4b1aa32c9e05cf789611be7f8c75f",
)
"""The first topics of DelegateAll, DelegateContract, DelegateERC721 and DelegateERC1155 (IDelegateRegistry.sol).

The registry logs them when a delegation is given or withdrawn; the next two topics are the vault and the delegate.
"""


@dataclass(frozen=True, slots=True)
class RegisteredDelegation:
    """A vault's permission for a delegate to speak for it: for all it holds, for one contract, or for one token.

    Addresses are in lower case. `contract` is empty for the kind `all`, and `token_id` (decimal) for every kind except
    `token`. `amount` is how many of an ERC-1155 token count at most, and None where there is no such limit.
    """

    kind: Kind
    delegate: str
    vault: str
    contract: str
    token_id: str
    amount: int | None


@dataclass(frozen=True, slots=True)
class DelegationSheet:
    """The vaults that let each asked wallet speak for them on one chain, all at one block of one node.

    Every delegate is in exactly one of the two: `found` has all of its delegations, `unsure` why they are unknown.
    """

    chain: str
    block: int
    block_time: datetime
    endpoint: int
    source: str
    found: Mapping[str, tuple[RegisteredDelegation, ...]]
    unsure: Mapping[str, str]


def own_rights(product_name: str) -> bytes:
    """Return the 32 bytes of rights that delegate to us alone: the product's name in small letters, then zeros."""
    return re.sub(r"[^a-z0-9]", "", product_name.lower()).encode()[:WORD].ljust(WORD, b"\0")


class DelegateRegistry:
    """The registries of the chains in the table (docs/facts.md#delegate-registry).

    A failure is a ProviderError, never "nobody". A delegation counts if it is limited to `rights`, or not limited.
    Delegations with other rights, and those of ERC-20 amounts, are ignored.
    """

    def __init__(self, pool: NodePool, rights: bytes) -> None:
        self._pool = pool
        self._rights = (bytes(WORD), rights)

    async def incoming(self, chain: str, delegates: Sequence[str], *, at: ReadPoint = NEWEST) -> DelegationSheet:
        """Return the vaults that the delegates may speak for; those for whom there was no time are unsure.

        A chain without a registry has no delegations. Raises ValueError for an invalid address.
        """
        packed(delegates)
        asked = [delegate.lower() for delegate in dict.fromkeys(delegates)]
        deadline = asyncio.get_running_loop().time() + self._pool.deadline

        async def ask(node: Node) -> DelegationSheet:
            head = await (node.settled if at.settled else node.head)(at.not_before_block)
            return await self._read(node, head, asked, deadline)

        return await self._pool.first(chain, ask, endpoint=at.endpoint, deadline=deadline)

    async def _read(self, node: Node, head: Head, delegates: list[str], deadline: float) -> DelegationSheet:
        found, unsure = dict[str, tuple[RegisteredDelegation, ...]](), dict[str, str]()
        registry = CHAINS[node.chain.key].delegates
        if registry is None:
            found = dict.fromkeys(delegates, ())
        # In random order, so that it is not always the same delegates for whom there is no time.
        parts = list(chunks(delegates, BATCH)) if registry is not None else []
        try:
            async with question_time.timeout_at(deadline - KEPT_FOR_THE_ANSWER):
                for part in random.sample(parts, len(parts)):
                    await self._batch(node, head, registry or "", part, found, unsure)
        except TimeoutError:
            if not found:
                raise
            unsure |= {one: NOT_IN_TIME for one in delegates if one not in found and one not in unsure}
        return DelegationSheet(node.chain.key, head.block, head.time, node.index, node.source, found, unsure)

    async def _batch(
        self,
        node: Node,
        head: Head,
        registry: str,
        delegates: Sequence[str],
        found: dict[str, tuple[RegisteredDelegation, ...]],
        unsure: dict[str, str],
    ) -> None:
        """Send one request, halved while it is too much. A wallet that alone is too much is unsure."""
        calls = [
            ("eth_call", ({"to": registry, "data": "0x" + (GET_INCOMING + bytes.fromhex(one[2:])).hex()}, block))
            for block in (hex(head.block),)
            for one in delegates
        ]
        try:
            results = await node.batch(calls)
        except (TooMuch, NodeTimedOut) as fault:
            if len(delegates) == 1:
                unsure[delegates[0]] = str(fault)
                return
            middle = len(delegates) // 2
            for half in (delegates[:middle], delegates[middle:]):
                await self._batch(node, head, registry, half, found, unsure)
            return
        for delegate, result in zip(delegates, results, strict=True):
            if isinstance(result, Reverted | TooMuch):
                # Anybody can give a wallet more delegations than a node can list in one call.
                unsure[delegate] = str(result)
            elif isinstance(result, ProviderError):
                raise result
            elif result == "0x" and await self._without_registry(node, head, registry):
                found[delegate] = ()
            else:
                found[delegate] = self._delegations(node.name, delegate, binary(node.name, result))

    async def _without_registry(self, node: Node, head: Head, registry: str) -> bool:
        """Return whether this chain has no registry; a node that finds no other contract either is not believed."""
        known = node.chain.multicall3
        if known is None:
            return False
        here, there = await node.batch([("eth_getCode", (address, hex(head.block))) for address in (registry, known)])
        if isinstance(here, ProviderError) or isinstance(there, ProviderError):
            return False
        return not binary(node.name, here) and bool(binary(node.name, there))

    def _delegations(self, provider: str, delegate: str, said: bytes) -> tuple[RegisteredDelegation, ...]:
        """Return the delegations in the ABI's Delegation[].

        Each is `(type_, to, from, rights, contract_, tokenId, amount)`, a word for each field.
        """
        words = [said[at : at + WORD] for at in range(0, len(said) - len(said) % WORD, WORD)]
        numbers = [int.from_bytes(word, "big") for word in words[:2]]
        if len(numbers) < 2 or numbers[0] != WORD or len(words) != 2 + FIELDS * numbers[1] or len(said) % WORD:
            raise ProviderConfused(provider, "the registry's answer is not a list of delegations")
        listed = list[RegisteredDelegation]()
        for at in range(2, len(words), FIELDS):
            kind, to, vault, rights, contract, token, amount = words[at : at + FIELDS]
            number = int.from_bytes(kind, "big")
            if _address(to) != delegate or not (number in _KINDS or number == _ERC20):
                raise ProviderConfused(provider, "the registry answers about somebody else")
            # Only ERC-20 and ERC-1155 have an amount; the registry says 0 for the other kinds.
            many = int.from_bytes(amount, "big") if number == _ERC1155 else None
            if number == _ERC20 or rights not in self._rights or many == 0:
                continue
            which = _KINDS[number]
            listed.append(
                RegisteredDelegation(
                    which, delegate, _address(vault), "" if which == "all" else _address(contract),
                    str(int.from_bytes(token, "big")) if which == "token" else "", many,
                )
            )  # fmt: skip
        return tuple(listed)


def _address(word: bytes) -> str:
    return "0x" + word[-20:].hex()
