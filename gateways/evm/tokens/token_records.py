"""What a chain itself says about single tokens: where their metadata is. Also lists a few tokens of a collection."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from gateways.chains.balance_sheet import packed
from gateways.chains.metadata_addresses import LONGEST_LINK, with_id
from gateways.chains.metadata_traits import TraitList
from gateways.evm.rpc.errors import NodeTimedOut, RpcRefused, TooMuch
from gateways.evm.rpc.node import Node, binary
from gateways.evm.rpc.pool import NodePool
from gateways.transport.chunks import chunks
from gateways.transport.errors import ProviderError

# Selectors: docs/facts.md#token-standards; tokenByIndex(uint256) by keccak.
TOKEN_URI, URI = bytes.fromhex("c87b56dd"), bytes.fromhex("0e89341c")
TOKEN_BY_INDEX = bytes.fromhex("4f6ccce7")
WORD = 32
TOKENS_A_BATCH = 10
AT_ONCE = 3
LARGEST_ID = 2**256 - 1


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """A token's entry on its chain: the link to its metadata, or its traits where the chain's index has read them.

    `index` names the index that said so; empty where the contract did.
    """

    link: str = ""
    traits: TraitList | None = None
    index: str = ""


class TokenRecords(Protocol):
    """The tokens' entries on their chains. A failure is a ProviderError."""

    async def records(
        self, chain: str, contract: str, token_ids: Sequence[str], *, apart_from: str = ""
    ) -> Mapping[str, TokenRecord]:
        """Return the entries; a token for which the contract gives nothing is left out.

        The index `apart_from` is not asked.
        """
        ...

    async def sample(self, chain: str, contract: str, most: int) -> Sequence[str]:
        """Return the ids of some tokens of the collection, at most `most`; none where they cannot be found out."""
        ...


class EvmRecords:
    """The EVM chains' contracts: `tokenURI(uint256)` of ERC-721, `uri(uint256)` of ERC-1155 with its `{id}` filled in.

    A contract that reverts, answers nonsense or runs out of gas gives no link for that token.
    """

    def __init__(self, pool: NodePool) -> None:
        self._pool = pool

    async def records(
        self, chain: str, contract: str, token_ids: Sequence[str], *, apart_from: str = ""
    ) -> Mapping[str, TokenRecord]:
        """Return the links at the answering node's head, read in batches of ten tokens.

        Ids that are not uint256 are left out.
        """
        packed([contract])
        numbers = {one: int(one) for one in token_ids if one.isascii() and one.isdigit() and len(one) <= 78}
        asked = [(one, number) for one, number in numbers.items() if number <= LARGEST_ID]

        async def ask(node: Node) -> Mapping[str, TokenRecord]:
            await node.head()
            turn = asyncio.Semaphore(AT_ONCE)

            async def part(tokens: Sequence[tuple[str, int]]) -> dict[str, TokenRecord]:
                async with turn:
                    return await _read(node, contract, tokens)

            parts = await asyncio.gather(*map(part, chunks(asked, TOKENS_A_BATCH)))
            return {token: record for found in parts for token, record in found.items()}

        return await self._pool.first(chain, ask) if asked else {}

    async def sample(self, chain: str, contract: str, most: int) -> Sequence[str]:
        """Return the first tokens by `tokenByIndex` (ERC-721 with enumeration); none for other contracts."""
        packed([contract])

        async def ask(node: Node) -> Sequence[str]:
            await node.head()
            answers = await _calls(
                node, contract, [TOKEN_BY_INDEX + index.to_bytes(WORD, "big") for index in range(most)]
            )
            return [str(int.from_bytes(said, "big")) for said in answers if said is not None and len(said) == WORD]

        return await self._pool.first(chain, ask)


async def _read(node: Node, contract: str, tokens: Sequence[tuple[str, int]]) -> dict[str, TokenRecord]:
    """Return the links of a few tokens, read in halves if their answers are too much together."""
    calls = [selector + number.to_bytes(WORD, "big") for _, number in tokens for selector in (TOKEN_URI, URI)]
    try:
        said = await _calls(node, contract, calls)
    except (TooMuch, NodeTimedOut):
        if len(tokens) == 1:
            return {}
        half = len(tokens) // 2
        return await _read(node, contract, tokens[:half]) | await _read(node, contract, tokens[half:])
    found: dict[str, TokenRecord] = {}
    for (token, number), own, shared in zip(tokens, said[::2], said[1::2], strict=True):
        link = _text(own) or with_id(_text(shared), number)
        if link:
            found[token] = TokenRecord(link)
    return found


async def _calls(node: Node, contract: str, calls: Sequence[bytes]) -> list[bytes | None]:
    """Return what the contract answers to each call; None where the call itself failed. Raises ProviderError."""
    answers = await node.batch(
        [("eth_call", ({"to": contract, "data": "0x" + data.hex()}, "latest")) for data in calls]
    )
    said: list[bytes | None] = []
    for answer in answers:
        if isinstance(answer, RpcRefused):
            said.append(None)
        elif isinstance(answer, ProviderError):
            raise answer
        else:
            said.append(binary(node.name, answer))
    return said


def _text(said: bytes | None) -> str:
    """Return an ABI string of at most twice a document's size; empty for anything else."""
    if said is None or len(said) < 2 * WORD:
        return ""
    offset = int.from_bytes(said[:WORD], "big")
    if offset + WORD > len(said):
        return ""
    size = int.from_bytes(said[offset : offset + WORD], "big")
    if size > LONGEST_LINK or offset + WORD + size > len(said):
        return ""
    return said[offset + WORD : offset + WORD + size].decode("utf-8", "replace").replace("\0", "").strip()
