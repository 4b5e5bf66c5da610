"""Whether owners hold any NFT at all: tokens that an indexer or an earlier read names, verified on the chain."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from gateways.chains.indexer import LISTS, Item, Listing, item_of, listed_of
from gateways.chains.read_point import ReadPoint
from gateways.chains.token_sheet import TokenHints, TokenSheet
from gateways.evm.rpc.node import Head, Node
from gateways.evm.tokens.one_word_calls import Asker, Question
from gateways.evm.tokens.one_word_program import Said, Silence
from gateways.evm.tokens.read_progress import BALANCE_OF, BALANCE_OF_ID, OWNER_OF, word
from gateways.evm.tokens.received_tokens import LogReader
from gateways.evm.tokens.standards import Standards
from locales import N_

MOST_VERIFIED = 40
"""Tokens of one owner that are asked about at first; one that the owner really holds is enough."""
MOST_LISTED = 2_000
"""Tokens of one owner that are asked about at all; an owner with a longer list is never found to hold nothing."""
UNVERIFIED = N_("what the indexer lists could not be verified")
LATELY = 600.0
"""Seconds before the newest block for which no list counts as complete: indexers lag behind the chain."""
KEPT_FOR_THE_CHAIN = 5.0
"""Seconds of the whole time that are kept for verifying on the chain."""


class AnythingReader:
    """Finds out through one node whether owners hold any NFT."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self._asker = Asker(node)
        self._standards = Standards(self._asker)
        self._logs = LogReader(node)

    async def read(
        self, owners: Sequence[str], trails: Mapping[str, TokenHints], listing: Listing, at: ReadPoint, deadline: float
    ) -> TokenSheet:
        """Return the owners' tokens at the node's head, or its settled block. Raises ProviderError."""
        head = await (self.node.settled if at.settled else self.node.head)(at.not_before_block)
        look = _Look(self, head, owners, dict(trails))
        await look.remembered()
        await look.listed(listing, deadline - KEPT_FOR_THE_CHAIN)
        if at.settled:
            await look.in_the_logs(deadline)
            await look.lately(at.not_before_block, deadline)
        return TokenSheet(
            chain=self.node.chain.key, contract="any", block=head.block, block_time=head.time,
            endpoint=self.node.index, source=self.node.source, held=look.held, unsure=look.unsure,
            trails=look.kept(settled=at.settled), alone=look.alone,
        )  # fmt: skip

    async def follow(
        self, owners: Sequence[str], trails: dict[str, TokenHints], head: Head, until: float
    ) -> tuple[set[str], str]:
        """Search the node's logs for every token that came to these owners; see `LogReader.search`."""
        return await self._logs.search("", False, owners, trails, head, until)

    async def verify(
        self, head: Head, items: Mapping[str, Sequence[Item]]
    ) -> dict[str, tuple[dict[str, int], set[str]]]:
        """Return for each owner the tokens that it holds, with amounts, and those that it clearly does not hold."""
        standards = await self._standards.of(head, {contract for given in items.values() for contract, _ in given})
        questions, meant = list[Question](), list[tuple[str, Item]]()
        result: dict[str, tuple[dict[str, int], set[str]]] = {}
        for owner, given in items.items():
            result[owner] = ({}, set())
            for contract, token in given:
                if standards[contract] is not None:
                    by_amount = standards[contract] == "ERC1155"
                    asked = BALANCE_OF_ID + word(owner) if by_amount else OWNER_OF
                    questions.append((contract, asked + word(token)))
                    meant.append((owner, (contract, token)))
        answers = await self._asker.ask(head, questions)
        gone = await self._gone(head, meant, answers, standards)
        for (owner, (contract, token)), said in zip(meant, answers, strict=True):
            found, denied = result[owner]
            amount = 0 if (contract, token, owner) in gone else _amount(said, owner, standards[contract] == "ERC1155")
            if amount:
                found[f"0x{contract.hex()}:{token}"] = amount
            elif amount is not None:
                denied.add(f"0x{contract.hex()}:{token}")
        return result

    async def _gone(
        self,
        head: Head,
        meant: Sequence[tuple[str, tuple[bytes, int]]],
        answers: Sequence[Said],
        standards: Mapping[bytes, str | None],
    ) -> set[tuple[bytes, int, str]]:
        """Return the `(contract, token, owner)` for which `ownerOf` reverted because the token is gone.

        It reverts for every token of a contract that does not work right now, too. So the contract must have answered
        for another token in this read, or count no token of the owner's.
        """
        reverted = {
            (contract, token, owner)
            for (owner, (contract, token)), said in zip(meant, answers, strict=True)
            if said is Silence.REVERTED and standards[contract] != "ERC1155"
        }
        speaking = {
            contract for (_, (contract, _)), said in zip(meant, answers, strict=True) if not isinstance(said, Silence)
        }
        doubtful = sorted({(contract, owner) for contract, _, owner in reverted if contract not in speaking})
        counts = await self._asker.ask(head, [(contract, BALANCE_OF + word(owner)) for contract, owner in doubtful])
        empty = {place for place, count in zip(doubtful, counts, strict=True) if count == 0}
        return {one for one in reverted if one[0] in speaking or (one[0], one[2]) in empty}


def _amount(said: Said, owner: str, by_amount: bool) -> int | None:
    """Return how many the owner has by this answer; None when it says nothing clear."""
    if isinstance(said, Silence):
        return None
    return said if by_amount else int(said == int(owner, 16))


def _items(ids: Iterable[str]) -> list[Item]:
    parts = (one.partition(":") for one in sorted(ids))
    return [item for contract, _, token in parts if (item := item_of(contract, token))]


@dataclass(slots=True)
class _Look:
    """One read in progress: what each owner holds, whether anything may be missing, and which ids were denied."""

    reader: AnythingReader
    head: Head
    owners: Sequence[str]
    trails: dict[str, TokenHints]
    held: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    unsure: dict[str, str] = field(default_factory=dict[str, str])
    alone: dict[str, str] = field(default_factory=dict[str, str])
    denied: dict[str, set[str]] = field(default_factory=dict[str, set[str]])

    def missing(self) -> list[str]:
        """Return the owners for whom nothing has been found."""
        return [owner for owner in self.owners if owner not in self.held]

    async def remembered(self) -> None:
        """Verify every token that was found before, a few for each owner first: one that the owner holds is enough."""
        known = {owner: _items(trail.ids) for owner in self.owners if (trail := self.trails.get(owner))}
        await self._verify({owner: items[:MOST_VERIFIED] for owner, items in known.items()})
        rest = {owner: known[owner][MOST_VERIFIED:] for owner in self.missing() if owner in known}
        await self._verify({owner: items for owner, items in rest.items() if items})

    async def listed(self, listing: Listing, until: float) -> None:
        """Verify what the indexers list."""
        lists = await listed_of(self.missing(), listing, until)
        given = {owner: one for owner, one in lists.items() if not isinstance(one, str)}
        await self._verify({owner: one.items[:MOST_VERIFIED] for owner, one in given.items()})
        rest = {owner: given[owner].items[MOST_VERIFIED:MOST_LISTED] for owner in self.missing() if owner in given}
        await self._verify({owner: items for owner, items in rest.items() if items})
        for owner in self.missing():
            one = lists[owner]
            if isinstance(one, str):
                self.unsure.setdefault(owner, one)
            elif not one.whole or len(one.items) > MOST_LISTED:
                self.unsure.setdefault(owner, UNVERIFIED)
            else:
                self.alone[owner] = one.alone or LISTS

    async def in_the_logs(self, deadline: float) -> None:
        """Search the logs for tokens that came to owners without one, unless two indexers list nothing for them."""
        doubtful = [owner for owner in self.missing() if self.unsure.get(owner, "") != UNVERIFIED]
        doubtful = [owner for owner in doubtful if owner in self.unsure or self.alone.get(owner, LISTS) != LISTS]
        if not doubtful:
            return
        until = deadline - self.reader.node.request_seconds - KEPT_FOR_THE_CHAIN
        before = {owner: self.trails.get(owner, TokenHints()).ids for owner in doubtful}
        complete, _ = await self.reader.follow(doubtful, self.trails, self.head, until)
        fresh = {owner: _items(self.trails[owner].ids - before[owner]) for owner in doubtful}
        await self._verify({owner: items for owner, items in fresh.items() if items})
        for owner in complete - self.held.keys():
            if self.unsure.get(owner) != UNVERIFIED:
                self.unsure.pop(owner, None)
                self.alone.pop(owner, None)

    async def lately(self, not_before_block: int, deadline: float) -> None:
        """Search the logs up to the newest block for tokens that came too late for any list or the settled block.

        An owner whose logs cannot be searched still has nothing by the lists alone, or becomes unsure.
        """
        owners = [one for one in self.missing() if one not in self.unsure and self.alone.get(one, LISTS) == LISTS]
        if not owners:
            return
        newest = await self.reader.node.head(max(not_before_block, self.head.block))
        first = max(0, newest.block - math.ceil(LATELY / self.reader.node.chain.block_seconds))
        searched = {self.reader.node.mark: (0, min(first, self.head.block))}
        trails = {owner: TokenHints(searched=searched) for owner in owners}
        until = deadline - self.reader.node.request_seconds - KEPT_FOR_THE_CHAIN
        complete, why = await self.reader.follow(owners, trails, newest, until)
        for owner in owners:
            if owner in complete and self.alone.get(owner) == LISTS:
                del self.alone[owner]
            elif owner not in complete and owner not in self.alone:
                self.unsure[owner] = why  # that it has nothing was proved up to the settled block only
        came = {owner: items for owner in owners if (items := _items(trails[owner].ids))}
        await self._verify(came, newest)

    async def _verify(self, items: Mapping[str, Sequence[Item]], head: Head | None = None) -> None:
        for owner, (found, denied) in (await self.reader.verify(head or self.head, items)).items():
            if found:
                self.held.setdefault(owner, {}).update(found)
                self.unsure.pop(owner, None)
                self.alone.pop(owner, None)
            elif len(denied) < len(items[owner]):
                self.unsure[owner] = UNVERIFIED
            self.denied.setdefault(owner, set()).update(denied)

    def kept(self, *, settled: bool) -> dict[str, TokenHints]:
        """Return the trails after this read: with the tokens found, without those that are gone at a settled block."""
        found: dict[str, TokenHints] = {}
        for owner in self.owners:
            before = self.trails.get(owner, TokenHints())
            gone = self.denied.get(owner, set[str]()) & before.ids if settled else set[str]()
            kept = before.without(frozenset(gone)).with_ids(self.held.get(owner, ()))
            if kept != TokenHints():
                found[owner] = kept
        return found
