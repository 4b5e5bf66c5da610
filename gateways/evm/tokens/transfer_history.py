"""Every transfer of one contract's tokens or of a coin, from its first block on, in slices that nodes accept.

Adding up the moves gives each token's owner at the last block that was read; no transfer needs to be kept for that.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, cast

import msgspec
import orjson

from gateways.chains.catalogue import CHAINS
from gateways.evm.rpc import node_limits
from gateways.evm.rpc.errors import NodeTimedOut, Reverted, TooMuch
from gateways.evm.rpc.log_refusals import about_range, too_much
from gateways.evm.rpc.node import Head, Node, binary, block_in, patiently, quantity
from gateways.evm.rpc.pool import NodePool
from gateways.evm.rpc.stated_limits import stated_blocks
from gateways.evm.tokens.contract_info import BALANCE_OF, TOTAL_SUPPLY
from gateways.evm.tokens.event_topics import CONSECUTIVE, TRANSFER, TRANSFER_BATCH, TRANSFER_SINGLE
from gateways.evm.tokens.one_word_calls import Asker
from gateways.evm.tokens.one_word_program import Silence
from gateways.evm.tokens.read_progress import OWNER_OF
from gateways.evm.tokens.received_tokens import UNTRIED
from gateways.transport import question_time
from gateways.transport.errors import ProviderConfused, ProviderDown, ProviderError

EVENTS = (TRANSFER, TRANSFER_SINGLE, TRANSFER_BATCH, CONSECUTIVE)
COIN = -1
"""Used in place of a token's id for an amount of a coin, which has no ids."""
CONFIRMED_SECONDS = 20.0
"""How long another node is asked about one slice: what one node gives at once may take another a million answers."""
_HASH, _WORD = 66, 32


class TokenMove(NamedTuple):
    """A move of `amount` of each token from `first_id` to `last_id` from one address to another.

    The zero address is the sender of a mint and the receiver of a burn. For a coin both ids are COIN.
    """

    block: int
    first_id: int
    last_id: int
    amount: int
    sender: str
    receiver: str


class HistorySlice(NamedTuple):
    """The moves in the blocks from the first that was asked for to `last`, in the order of the chain."""

    moves: list[TokenMove]
    last: int
    odd: list[int]
    """For each log of a transfer event that does not name tokens and addresses as the standards do, its block."""

    @property
    def unread(self) -> int:
        """The number of those logs, whose moves are unknown."""
        return len(self.odd)

    def up_to(self, last: int) -> "HistorySlice":
        """Return the part of the slice that ends with this block."""
        moves = [move for move in self.moves if move.block <= last]
        return HistorySlice(moves, last, [block for block in self.odd if block <= last])


class MoveLog(msgspec.Struct, gc=False, rename="camel"):
    """The fields of a log that are read."""

    address: str
    topics: list[str]
    data: str
    block_number: str
    log_index: str
    removed: bool = False


class _MoveLogs(msgspec.Struct):
    id: int
    result: list[MoveLog]
    error: None = None


_MOVE_LOGS = msgspec.json.Decoder(_MoveLogs)


class TransferHistory:
    """The transfers of single contracts. A failure is a ProviderError, never an empty slice.

    It learns how many blocks each node gives for each contract: one answer may have a quiet one's whole history.
    """

    def __init__(self, nodes: NodePool) -> None:
        self._nodes = nodes
        self._widths: dict[tuple[str, str], _Width] = {}
        """URL and contract → how many blocks to ask for."""

    def endpoints(self, chain: str) -> int:
        """Return how many nodes are set for the chain; 0 for one that is off or not an EVM chain."""
        return self._nodes.endpoints(chain)

    async def settled(self, chain: str, endpoint: int) -> Head:
        """Return the newest settled block of one node; blocks up to it are not expected to be replaced any more."""
        return await self._nodes.first(chain, Node.settled, endpoint=endpoint)

    async def block(self, chain: str, number: int, endpoint: int) -> Head:
        """Return a block as one node has it now, with its hash. Raises ProviderConfused if the node gives none."""

        async def ask(node: Node) -> Head:
            found = block_in(node.name, await patiently(node, "eth_getBlockByNumber", (hex(number), False)))
            if found.block != number or not found.block_hash:
                raise ProviderConfused(node.name, "it gives another block than the one that was asked for")
            return found

        return await self._nodes.first(chain, ask, endpoint=endpoint)

    async def read(self, chain: str, contract: str, first: int, last: int, endpoint: int) -> HistorySlice:
        """Return the transfers from block `first` on, at most up to `last`, in one answer of one node.

        The slice is as long as the node allows, so the largest answer that is read bounds it.
        """
        return await self._nodes.first(
            chain, lambda node: self._slice(node, contract.lower(), first, last), endpoint=endpoint
        )

    async def confirmed(self, chain: str, contract: str, first: int, last: int, by: Sequence[int]) -> HistorySlice:
        """Return a slice as the first of the nodes in `by` gives it, if all the others give the same.

        It ends sooner where another one cannot confirm it all within CONFIRMED_SECONDS. Raises ProviderConfused if they
        differ.
        """
        found = await self.read(chain, contract, first, last, by[0])
        for other in by[1:]:
            moves, odd, start = list[TokenMove](), list[int](), first
            until = question_time.now() + CONFIRMED_SECONDS
            while start <= found.last:
                part = await self.read(chain, contract, start, found.last, other)
                moves += part.moves
                odd += part.odd
                start = part.last + 1
                if len(moves) > len(found.moves) or len(odd) > len(found.odd):
                    break
                if question_time.now() >= until:
                    found = found.up_to(part.last)
            if (moves, odd) != (found.moves, found.odd):
                said = f"its nodes differ about the transfers in the blocks {first} to {found.last}"
                raise ProviderConfused(CHAINS[chain].title, said)
        return found

    async def stated(
        self, chain: str, contract: str, owners: Sequence[str], block: int, endpoint: int
    ) -> list[int | None]:
        """Return a coin's total supply at a block, then each owner's balance; None where a call fails."""
        data = [TOTAL_SUPPLY, *(BALANCE_OF + bytes(12) + bytes.fromhex(owner[2:]) for owner in owners)]
        calls = [("eth_call", ({"to": contract, "data": "0x" + one.hex()}, hex(block))) for one in data]

        async def ask(node: Node) -> list[int | None]:
            return [_number(node.name, one) for one in await node.batch(calls)]

        return await self._nodes.first(chain, ask, endpoint=endpoint)

    async def owners(
        self, chain: str, contract: str, tokens: Sequence[int], head: Head, endpoint: int
    ) -> dict[int, str] | None:
        """Return the owner of each ERC-721 token at a block, by one node; burnt tokens are left out.

        Returns None if an answer is unclear, or if the tokens with an owner are not as many as `totalSupply` says.
        """
        asked = bytes.fromhex(contract[2:])
        questions = [(asked, TOTAL_SUPPLY), *((asked, OWNER_OF + one.to_bytes(_WORD)) for one in tokens)]
        supply, *said = await self._nodes.first(chain, lambda node: Asker(node).ask(head, questions), endpoint=endpoint)
        if any(one in {Silence.NONSENSE, Silence.RAN_OUT} for one in said):
            return None
        owned = {token: one for token, one in zip(tokens, said, strict=True) if isinstance(one, int) and one}
        if supply != len(owned) or any(one >> 160 for one in owned.values()):
            return None
        return {token: f"0x{one:040x}" for token, one in owned.items()}

    async def _slice(self, node: Node, contract: str, first: int, last: int) -> HistorySlice:
        width = self._widths.setdefault((node.url, contract), _Width(node_limits.known(node.url).log_blocks))
        until = question_time.now() + self._nodes.deadline
        while question_time.now() < until:
            end = min(last, first + width.blocks - 1)
            where = {"address": contract, "fromBlock": hex(first), "toBlock": hex(end), "topics": [list(EVENTS)]}
            try:
                said = await patiently(node, "eth_getLogs", (where,), decode_moves)
            except ProviderError as fault:
                if end == first or not too_much(fault):
                    raise
                width.refused(end - first + 1, fault)
                continue
            width.gave(end - first + 1)
            return _slice(node.name, contract, said, first, end)
        raise ProviderDown(node.name, "no answer in time")


class _Width:
    """How many blocks one node is asked for next."""

    def __init__(self, known: int | None) -> None:
        self.blocks = known or UNTRIED
        self._most = known or UNTRIED

    def refused(self, size: int, fault: ProviderError) -> None:
        """Ask for as many blocks as the node says that it gives; otherwise for half, or an eighth after a timeout."""
        stated = stated_blocks(str(fault))
        smaller = max(1, size // (8 if isinstance(fault, NodeTimedOut) else 2))
        self.blocks = stated if stated is not None and stated < size else smaller
        if about_range(fault):
            self._most = self.blocks

    def gave(self, size: int) -> None:
        """Ask for a little more after a slice of the full width; a limit of the plan is kept."""
        if size >= self.blocks:
            self.blocks = min(self._most, self.blocks + max(1, self.blocks // 4))


def decode_moves(content: bytes) -> object:
    """Return a good answer to eth_getLogs with a list of MoveLog as its result; any other answer as orjson reads it."""
    try:
        answer = _MOVE_LOGS.decode(content)
    except (ValueError, RecursionError):  # an error, a wrong shape or no JSON: the caller finds out which
        return cast("object", orjson.loads(content))
    return {"id": answer.id, "result": answer.result}


def _slice(provider: str, contract: str, said: object, first: int, last: int) -> HistorySlice:
    """Return the slice that the logs make. Raises ProviderConfused where the node is at fault."""
    if not isinstance(said, list):
        raise ProviderConfused(provider, "the logs are not a list")
    try:
        logs = msgspec.convert(cast("list[object]", said), list[MoveLog])
    except ValueError as fault:
        raise ProviderConfused(provider, "a log has a wrong shape") from fault
    placed = dict[tuple[int, int], MoveLog]()
    for log in logs:
        place = quantity(provider, log.block_number), quantity(provider, log.log_index)
        if log.removed or log.address.lower() != contract or not first <= place[0] <= last:
            raise ProviderConfused(provider, "a log that was not asked for")
        if place in placed:
            raise ProviderConfused(provider, "its logs repeat themselves")
        placed[place] = log
    moves, odd = list[TokenMove](), list[int]()
    for place in sorted(placed):
        found = _moves(provider, place[0], placed[place])
        if found is None:
            odd.append(place[0])
        else:
            moves += found
    return HistorySlice(moves, last, odd)


def _moves(provider: str, block: int, log: MoveLog) -> list[TokenMove] | None:
    """Return the moves in one log; None if it does not name the tokens and both addresses as the standards do."""
    event, topics = log.topics[0].lower() if log.topics else "", log.topics[1:]
    if event not in EVENTS:
        raise ProviderConfused(provider, "a log of another event")
    if event == TRANSFER and [len(topic) for topic in topics] == [_HASH, _HASH]:
        # ERC-20: the amount is not indexed.
        words, (sender, receiver) = _words(binary(provider, log.data)), ("0x" + one[-40:].lower() for one in topics)
        return [TokenMove(block, COIN, COIN, words[0], sender, receiver)] if len(words) == 1 else None
    if len(topics) != 3 or any(len(topic) != _HASH for topic in topics):
        return None
    at = 0 if event == TRANSFER else 1
    sender, receiver = ("0x" + topic[-40:].lower() for topic in topics[at : at + 2])
    if event == TRANSFER:
        token = quantity(provider, topics[2])
        return [TokenMove(block, token, token, 1, sender, receiver)]
    words = _words(binary(provider, log.data))
    if event == CONSECUTIVE:
        # Its topics are the first token and both addresses; its data is the last token.
        begin = quantity(provider, topics[0])
        return [TokenMove(block, begin, words[0], 1, sender, receiver)] if words and words[0] >= begin else None
    if event == TRANSFER_SINGLE:
        return [TokenMove(block, words[0], words[0], words[1], sender, receiver)] if len(words) >= 2 else None
    pairs = _batch(words)
    if pairs is None:
        return None
    return [TokenMove(block, token, token, amount, sender, receiver) for token, amount in pairs]


def _number(provider: str, answer: object) -> int | None:
    if isinstance(answer, Reverted | TooMuch):
        return None
    if isinstance(answer, ProviderError):
        raise answer
    said = binary(provider, answer)
    return int.from_bytes(said, "big") if len(said) == _WORD else None


def _words(data: bytes) -> list[int]:
    return [int.from_bytes(data[at : at + _WORD], "big") for at in range(0, len(data) - _WORD + 1, _WORD)]


def _batch(words: Sequence[int]) -> list[tuple[int, int]] | None:
    """Return the tokens and amounts in two lists, whose offsets come first; None for anything else."""
    lists = [list(_listed(words, place)) for place in words[:2]]
    if len(lists) != 2 or not all(lists) or len(lists[0]) != len(lists[1]):
        return None
    ids, amounts = (one[1:] for one in lists)
    return list(zip(ids, amounts, strict=True))


def _listed(words: Sequence[int], place: int) -> Iterator[int]:
    """Yield the length of a list and its items; nothing where the data ends before the list does."""
    start, rest = divmod(place, _WORD)
    if rest or start >= len(words) or start + words[start] >= len(words):
        return
    yield from words[start : start + 1 + words[start]]
