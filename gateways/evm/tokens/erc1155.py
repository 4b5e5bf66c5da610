"""ERC-1155: how many of each token owners have. No call lists the ids, so *any* id needs the whole history."""

from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from secrets import randbelow

from gateways.chains.balance_sheet import MOST
from gateways.chains.token_sheet import IN_TURN
from gateways.evm.tokens.one_word_program import Silence
from gateways.evm.tokens.read_progress import (
    BALANCE_OF_ID,
    KEPT_FOR_THE_REST,
    MOST_QUESTIONS,
    TokenRead,
    no_answer_for,
    word,
)
from gateways.transport import question_time
from gateways.transport.chunks import chunks
from gateways.transport.exchanges import together
from locales import N_

MOST_PAIRS = 240_000
"""The most pairs of an owner and a named id that one read asks about."""
PAIRS_AT_A_TIME = 8_000
"""Pairs that are asked about before the time is checked again; about two calls."""
AT_ONCE = 4


@dataclass(slots=True)
class Erc1155:
    """One read of one ERC-1155 contract."""

    read: TokenRead

    async def run(self) -> None:
        """Fill the read's amounts. Raises ProviderError when the node fails."""
        left = await self._exactly()
        if left:
            await self._by_history(left)

    @property
    def _in_turns(self) -> bool:
        """Whether every wanted id can be asked about, for some of the owners in each read."""
        return self.read.wanted is not None and 0 < self.read.wanted.count <= MOST_PAIRS

    async def _exactly(self) -> list[str]:
        """Ask about every wanted id for as many owners as there is time for; return the owners that are left over.

        Each read begins with a random owner, so that after some reads every owner has had a turn.
        """
        read = self.read
        if read.wanted is None or not self._in_turns:
            return list(read.owners)
        count = read.wanted.count
        ids, done = list(read.wanted), set[str]()
        size, most = max(1, PAIRS_AT_A_TIME // count), MOST_PAIRS // count
        first = randbelow(len(read.owners)) if read.owners else 0
        turns = [*read.owners[first:], *read.owners[:first]][:most]
        todo = deque(chunks(turns, size))

        async def ask(owners: Sequence[str]) -> None:
            await self._ask([(owner, one) for owner in owners for one in ids])
            done.update(owners)

        async def worker() -> None:
            while todo and self._time_left():
                await ask(todo.popleft())

        # The first owners are asked about in any case. They also show how many questions the node takes in a call.
        if todo:
            await ask(todo.popleft())
        with suppress(TimeoutError):
            async with question_time.timeout_at(read.deadline - KEPT_FOR_THE_REST):
                await together(worker() for _ in range(min(AT_ONCE, len(todo))))
        return [owner for owner in read.owners if owner not in done]

    def _time_left(self) -> bool:
        """Return whether more questions can be answered before the time that is kept for the rest."""
        seconds = self.read.logs.node.request_seconds + KEPT_FOR_THE_REST
        return question_time.now() < self.read.deadline - seconds

    async def _by_history(self, owners: Sequence[str]) -> None:
        """Ask about the ids that are known to have come to the owners, from earlier reads, logs and an indexer."""
        read = self.read
        complete, reason = await read.follow(owners, many=True)
        if self._in_turns:
            reason = IN_TURN
        await self._ask_known({owner: read.known([owner]) for owner in owners})
        missing = [owner for owner in owners if owner not in complete]
        if without := [owner for owner in missing if not read.amounts[owner]]:
            await self._ask_known(await read.listed(without))
        read.doubt(missing, reason)

    async def _ask_known(self, ids: Mapping[str, Sequence[int]]) -> None:
        read = self.read
        pairs = [
            (owner, one)
            for owner, given in ids.items()
            for one in given
            if one not in read.amounts[owner] and read.matters(one)
        ]
        if len(pairs) > MOST_QUESTIONS:
            read.doubt({owner for owner, _ in pairs[MOST_QUESTIONS:]}, N_("there are too many tokens to ask about"))
        await self._ask(pairs[:MOST_QUESTIONS])

    async def _ask(self, pairs: Sequence[tuple[str, int]]) -> None:
        """Ask `balanceOf(owner, id)` for each pair; a question without an answer makes the owner unsure."""
        read = self.read
        said = await read.ask([BALANCE_OF_ID + word(owner) + word(one) for owner, one in pairs])
        for (owner, one), amount in zip(pairs, said, strict=True):
            if isinstance(amount, Silence):
                read.doubt([owner], no_answer_for(one))
            elif amount:
                read.amounts[owner][one] = min(amount, MOST)
