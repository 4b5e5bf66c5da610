"""One read of owners' tokens in progress at one node: what is wanted, what is found, and what cannot be learned."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gateways.chains.indexer import Listing, listed_of
from gateways.chains.token_sheet import TokenHints, TokenIds
from gateways.evm.rpc.node import Head
from gateways.evm.tokens.one_word_calls import Asker
from gateways.evm.tokens.one_word_program import Said
from gateways.evm.tokens.received_tokens import LogReader
from gateways.transport import question_time
from locales.stored_texts import storable

# Selectors: docs/facts.md#token-standards.
BALANCE_OF = bytes.fromhex("70a08231")
OWNER_OF = bytes.fromhex("6352211e")
TOKEN_OF_OWNER = bytes.fromhex("2f745c59")
TOTAL_SUPPLY = bytes.fromhex("18160ddd")
BALANCE_OF_ID = bytes.fromhex("00fdd58e")

MOST_EXACT = 5_000
"""The most wanted ids that are checked one by one. Of more ids, only those that an owner is known to have had."""
MOST_QUESTIONS = 60_000
MOST_LISTINGS = 20
"""The most owners for whom an indexer is asked in one read."""
KEPT_FOR_THE_REST = 3.0
"""Seconds that are kept for the steps after the search for hints."""


@dataclass(slots=True)
class TokenRead:
    """The read's state; owners are lower-case addresses, amounts are by owner and token id."""

    asker: Asker
    logs: LogReader
    listing: Listing
    head: Head
    contract: bytes
    owners: tuple[str, ...]
    wanted: TokenIds | None
    trails: dict[str, TokenHints]
    deadline: float
    amounts: dict[str, dict[int, int]] = field(default_factory=dict[str, dict[int, int]])
    unsure: dict[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        self.amounts = {owner: {} for owner in self.owners}

    async def ask(self, questions: Sequence[bytes]) -> list[Said]:
        """Return the contract's answer to each question. Raises ProviderError when the node fails."""
        return await self.asker.ask(self.head, [(self.contract, data) for data in questions])

    def doubt(self, owners: Iterable[str], reason: str) -> None:
        """Note why these owners' tokens cannot be known in full; the first reason stays."""
        for owner in owners:
            self.unsure.setdefault(owner, reason)

    def matters(self, token: int) -> bool:
        """Return whether the token is a wanted one."""
        return self.wanted is None or token in self.wanted

    def known(self, owners: Iterable[str]) -> list[int]:
        """Return the ids in these owners' trails, sorted."""
        return sorted({int(one) for owner in owners if (trail := self.trails.get(owner)) for one in trail.ids})

    async def follow(self, owners: Sequence[str], *, many: bool, pieces: int | None = None) -> tuple[set[str], str]:
        """Search the node's logs for transfers to these owners, in at most `pieces` pieces; see `LogReader.search`."""
        until = self.deadline - self.logs.node.request_seconds - KEPT_FOR_THE_REST
        contract = "0x" + self.contract.hex()
        return await self.logs.search(contract, many, owners, self.trails, self.head, until, pieces)

    async def listed(self, owners: Sequence[str]) -> dict[str, list[int]]:
        """Return the ids of this contract that indexers list for a few of these owners.

        Owners without any are left out.
        """
        # At random, so that owners whose lists do not help keep no other from its turn.
        asked = random.sample(owners, min(len(owners), MOST_LISTINGS))
        until = min(self.deadline - KEPT_FOR_THE_REST, question_time.now() + KEPT_FOR_THE_REST)
        lists = await listed_of(asked, self.listing, until)
        return {
            owner: ids
            for owner, given in lists.items()
            if not isinstance(given, str)
            and (ids := [token for contract, token in given.items if contract == self.contract])
        }


def no_answer_for(token: int) -> str:
    """Return the reason for which an owner is unsure when a contract does not answer about one token."""
    return storable("the contract gave no answer for token {token}", token=str(token)[:40])


def raw(address: str) -> bytes:
    """Return an address as its 20 bytes."""
    return bytes.fromhex(address[2:])


def word(value: int | str) -> bytes:
    """Return a number, or an address, as one word of call data."""
    return value.to_bytes(32, "big") if isinstance(value, int) else bytes(12) + raw(value)
