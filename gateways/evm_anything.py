"""Whether owners hold any NFT at all: what an indexer or an earlier look names, verified on the chain."""

from collections.abc import Iterable, Mapping, Sequence

from gateways.evm import Head, Node
from gateways.evm_asker import Asker, Question
from gateways.evm_questions import Said, Silence
from gateways.evm_standards import Standards
from gateways.evm_token_read import BALANCE_OF_ID, OWNER_OF, word
from gateways.indexer import Item, Listing, item_of, listed_of
from gateways.token_sheet import TokenSheet, Trail

MOST_VERIFIED = 40
"""Tokens of one owner that are asked about; one that is really held is enough."""
KEPT_FOR_THE_CHAIN = 5.0
"""Seconds of the whole time that are left for verifying."""


class AnythingReader:
    """Reads through one node."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self._asker = Asker(node)
        self._standards = Standards(self._asker)

    async def read(
        self,
        owners: Sequence[str],
        trails: Mapping[str, Trail],
        listing: Listing,
        not_before_block: int,
        deadline: float,
        *,
        settled: bool = False,
    ) -> TokenSheet:
        """At the node's head: first what was found before, then what the indexer lists. Raises ProviderError."""
        head = await (self.node.settled(not_before_block) if settled else self.node.head(not_before_block))
        held, unsure = dict[str, dict[str, int]](), dict[str, str]()
        before = {owner: items for owner in owners if (items := _remembered(trails.get(owner)))}
        for owner, (found, _) in (await self._verify(head, before)).items():
            if found:
                held[owner] = found
        missing = [owner for owner in owners if owner not in held]
        listed = await listed_of(missing, listing, deadline - KEPT_FOR_THE_CHAIN)
        unsure.update({owner: reason for owner, reason in listed.items() if isinstance(reason, str)})
        items = {owner: given for owner, given in listed.items() if not isinstance(given, str)}
        checked = await self._verify(head, {owner: given.items[:MOST_VERIFIED] for owner, given in items.items()})
        for owner, given in items.items():
            found, clear = checked[owner]
            if found:
                held[owner] = found
            elif not clear or not given.whole or len(given.items) > MOST_VERIFIED:
                unsure[owner] = "what the indexer lists could not be verified"
        return TokenSheet(
            chain=self.node.chain.key, contract="any", block=head.block, block_time=head.time,
            endpoint=self.node.index, source=self.node.source, held=held, unsure=unsure,
            trails={owner: Trail(frozenset(found)) for owner, found in held.items()},
        )  # fmt: skip

    async def _verify(self, head: Head, items: Mapping[str, Sequence[Item]]) -> dict[str, tuple[dict[str, int], bool]]:
        """Per owner what is really held, and whether the contracts answered clearly for all the rest."""
        standards = await self._standards.of(head, {contract for given in items.values() for contract, _ in given})
        questions, meant = list[Question](), list[tuple[str, Item]]()
        result: dict[str, tuple[dict[str, int], bool]] = {}
        for owner, given in items.items():
            result[owner] = ({}, all(standards[contract] is not None for contract, _ in given))
            for contract, token in given:
                if standards[contract] is not None:
                    by_amount = standards[contract] == "ERC1155"
                    asked = BALANCE_OF_ID + word(owner) if by_amount else OWNER_OF
                    questions.append((contract, asked + word(token)))
                    meant.append((owner, (contract, token)))
        for (owner, (contract, token)), said in zip(meant, await self._asker.ask(head, questions), strict=True):
            found, clear = result[owner]
            amount = _amount(said, owner, standards[contract] == "ERC1155")
            if amount:
                found[f"0x{contract.hex()}:{token}"] = amount
            result[owner] = (found, clear and amount is not None)
        return result


def _amount(said: Said, owner: str, by_amount: bool) -> int | None:
    """How many the owner has by this answer; None when it says nothing clear. A token that is gone is nobody's."""
    if isinstance(said, Silence):
        return 0 if said is Silence.REVERTED and not by_amount else None
    return said if by_amount else int(said == int(owner, 16))


def _remembered(trail: Trail | None) -> list[Item]:
    return _items(trail.ids if trail else ())[:MOST_VERIFIED]


def _items(ids: Iterable[str]) -> list[Item]:
    parts = (one.partition(":") for one in sorted(ids))
    return [item for contract, _, token in parts if (item := item_of(contract, token))]
