"""Confirm an answer that would take a role, by an independent second answer. Pure functions.

Two nodes of different providers are two sources, and so is one node twice if the chain's confirmation blocks lie
between both answers. Two answers of the same index or marketplace are one source, unless there is no other and some
time lies between them.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from gateways.chains.catalogue import CHAINS
from gateways.chains.indexer import LISTS
from locales import N_
from locales.stored_texts import storable
from services.collections.trait_match import FROM_LINK, OF_INDEX, is_link
from services.core.answer import Answer
from services.holdings.evaluate import Reading
from services.holdings.wallet_shares import WalletShare
from services.rules.expression import ANY_NFT

OTHERS_SILENT = timedelta(minutes=5)
"""How long a chain's other nodes must be silent before one node may confirm its own answer at a later block."""
APART = timedelta(minutes=10)
"""Minimum time between two answers of a source that is the only one, and between two reads of indexers' lists."""
ASKED_EVERY = 60.0
"""Maximum seconds after which silent nodes are asked again."""
NOT_SETTLED = N_("not settled yet")
CONTRADICTED = N_("two readings disagree")
KEPT = timedelta(days=1)
"""How long a first answer waits for its confirmation."""
DENIED = "-"
"""Ends the stored name of an answer that another source contradicted."""
_FORMER = " before"
"""Follows the name of a node that the settings had at this place before, and have no more."""


@dataclass(frozen=True, slots=True)
class Means:
    """The number of a chain's sources: of independent nodes in the settings, and of sources of its tokens' traits.

    `same` maps the name of a node to that of the first node of the same provider, where these differ. `providers` maps
    the name of each node to a digest of its provider.
    """

    nodes: int
    trait_sources: int
    same: Mapping[str, str] = field(default_factory=dict[str, str])
    providers: Mapping[str, str] = field(default_factory=dict[str, str])

    def named_now(self, earlier: "Earlier") -> "Earlier":
        """Return an earlier answer under its node's present name: the settings may have other nodes, or another order.

        Otherwise a node that has moved to another place could confirm itself, or pass for the one that was there.
        """
        if not earlier.provider or self.providers.get(earlier.source) == earlier.provider:
            return earlier
        now = next((name for name, provider in self.providers.items() if provider == earlier.provider), None)
        return replace(earlier, source=now or earlier.source.removesuffix(_FORMER) + _FORMER)

    def by_provider(self, reading: Reading) -> Reading:
        """Return a reading in which nodes of one provider have one name, so that they count as one source."""
        if not self.same:
            return reading
        parts = tuple(
            replace(part, alone=frozenset((token, self._of_index(source)) for token, source in part.alone))
            for part in reading.parts
        )
        return replace(reading, source=self.same.get(reading.source or "", reading.source), parts=parts)

    def _of_index(self, source: str) -> str:
        """Return the name of a source of traits with the name of the first index of its provider."""
        name, by, index = source.partition(OF_INDEX)
        return f"{name}{by}{self.same.get(index, index)}"


@dataclass(frozen=True, slots=True)
class Earlier:
    """An answer from an earlier reconcile: by which node, at which block, and when.

    `provider` is a digest of the node's provider; empty for what no node said, and for answers of older versions.
    """

    answer: Answer
    source: str
    block: int
    at: datetime
    provider: str = ""


@dataclass(frozen=True, slots=True)
class Confirmation:
    """Both answers combined. If only time is missing, `wait` is the seconds to wait."""

    reading: Reading
    wait: float | None = None


def confirm(
    first: Reading, second: Reading, earlier: Earlier | None, means: Means, now: datetime, opposed: int = 0
) -> Confirmation:
    """Return the second answer if it confirms the first one; otherwise return unknown.

    `second` is of a settled block. `earlier` is an earlier reconcile's answer to the same requirement. `opposed` is the
    newest block by whose opposite answer the role was given or kept. An answer at an earlier block does not confirm
    what a single node says of the time since.
    """
    first, second = means.by_provider(first), means.by_provider(second)
    if first.answer is not second.answer:
        unsettled = (first.block or 0) - _settled(second)
        moved = Answer.UNKNOWN not in {first.answer, second.answer} and unsettled > 0
        reason = second.reason or (NOT_SETTLED if moved else CONTRADICTED)
        return Confirmation(_unknown(second, reason), _seconds(first, unsettled) if moved else None)
    if second.answer is Answer.UNKNOWN or second.source is None or second.block is None:
        return Confirmation(second)
    if (unsettled := opposed - _settled(second)) > 0:
        return Confirmation(_unknown(second, NOT_SETTLED), _seconds(first, unsettled))
    before = earlier if earlier is not None and _counts(earlier, first, now) else None
    if first.source == second.source and (wait := _later(first, second, before, means, now)) > 0:
        return Confirmation(_unknown(second, N_("waiting for a later block to confirm")), wait)
    if second.requirement.kind.names_trait and _of_other_tokens(first, second):
        unsettled = (first.block or 0) - _settled(second)
        return Confirmation(_unknown(second, NOT_SETTLED), _seconds(first, unsettled) if unsettled > 0 else None)
    twice = {source for _, source in first.alone & second.alone} - {FROM_LINK}
    if not twice and not _linked(first) & _linked(second):
        other = first if first.source != second.source else before
        alone = other is not None and other.source == second.source
        return Confirmation(replace(second, first=_told(other), one_source=alone))
    source = min(twice, default=FROM_LINK)
    lists = source == LISTS
    # No other source can exist for a document that several indexes link to, while none of them has read it.
    if twice and not lists and (second.requirement.type != "trait" or means.trait_sources > 1):
        told = storable("only {source} answered, and one source alone is not enough", source=source)
        return Confirmation(_unknown(second, told))
    since = now - before.at if before is not None else timedelta(0)
    if since < APART:
        told = storable("waiting to ask {source} again", source=source)
        return Confirmation(_unknown(second, told), (APART - since).total_seconds())
    return Confirmation(replace(second, first=_told(before), one_source=not lists))


def _linked(reading: Reading) -> set[str]:
    """Return the tokens whose traits come from a linked document alone, by whichever index."""
    return {token for token, source in reading.alone if is_link(source)}


def opposed_at(reading: Reading, stored: Iterable[Mapping[str, Any]]) -> int:
    """Return the newest block of a stored reading (`Reading.document`) with the opposite answer; 0 if there is none.

    Only readings of the same condition count, as far as their documents tell it.
    """
    opposite = {Answer.YES: Answer.NO, Answer.NO: Answer.YES}.get(reading.answer)
    if opposite is None:
        return 0
    said = {**reading.document(), "answer": opposite.value}
    asked = {name: said.get(name) for name in ("chain", "contract", "type", "needed", "most", "answer")}
    of_same = (one for one in stored if {name: one.get(name) for name in asked} == asked)
    return max((int(one.get("block") or 0) for one in of_same), default=0)


def second_of(
    first: Reading, said: Sequence[Reading], earlier: Earlier | None, means: Means, now: datetime, opposed: int = 0
) -> Reading:
    """Return the second answer that counts. `said` has other nodes' answers first, that of the first one's node last.

    A contradiction wins over all confirmations. A partial answer decides nothing and blocks no confirmation, unless the
    part that it knows contradicts the others: then the result is unknown.
    """
    said = [_with_logs(one, said) for one in said]
    sure = [one for one in said if one.answer is not Answer.UNKNOWN]
    if first.answer is not Answer.UNKNOWN and (other := [one for one in sure if one.answer is not first.answer]):
        return other[0]
    confirming = (
        one for one in sure if confirm(first, one, earlier, means, now, opposed).reading.answer is not Answer.UNKNOWN
    )
    whole = (one for one in sure if not is_partial(one))
    second = [*confirming, *whole, *sure, *said][0]
    others = (one for one in said if one is not second and is_partial(one))
    against = next((one for one in others if _speaks_against(one, second)), None)
    return second if against is None else replace(against, answer=Answer.UNKNOWN, reason=CONTRADICTED)


def is_partial(reading: Reading) -> bool:
    """Return whether something about a wallet is unknown, so that another node may know more."""
    unknown = reading.answer is Answer.UNKNOWN or any(part.reason is not None for part in reading.parts)
    return unknown or _by_one_list(reading)


def _by_one_list(reading: Reading) -> bool:
    """Return whether only one index's list says what a wallet holds; a node with all its logs would know more."""
    return any(token == ANY_NFT and source != LISTS for token, source in reading.alone)


def _with_logs(reading: Reading, said: Iterable[Reading]) -> Reading:
    """Return a reading that relies on no index's list for wallets for which another node found nothing in its logs."""
    if not _by_one_list(reading):
        return reading
    searched = {
        _place(part)
        for one in said
        for part in (one.parts if one.answer is reading.answer else ())
        if part.reason is None and not part.alone and part.amount == 0
    }
    parts = (replace(part, alone=frozenset()) if _place(part) in searched else part for part in reading.parts)
    return replace(reading, parts=tuple(parts))


def _place(part: WalletShare) -> tuple[str, str, str]:
    """Return what identifies a share: the wallet or vault, the delegate, and which of its tokens count."""
    return part.address, part.through, part.mark


def _speaks_against(partial: Reading, sure: Reading) -> bool:
    """Return whether a node's partial knowledge contradicts another node's answer."""
    amounts = {_place(part): part.amount for part in sure.parts}
    for part in partial.parts:
        amount = amounts.get(_place(part))
        if amount is None or part.amount > amount or (part.reason is None and part.amount < amount):
            return True
    return False


def _of_other_tokens(first: Reading, second: Reading) -> bool:
    """Return whether one answer depends on a single source about a token that the other answer lacks.

    The token may have arrived after the settled block. Or only one node says that it is not held, and only one
    marketplace denies its trait.
    """
    pairs = ((first, second), (second, first))
    return any(token not in other.judged for one, other in pairs for token, _ in one.alone)


def _counts(earlier: Earlier, reading: Reading, now: datetime) -> bool:
    """Return whether an earlier answer was the same, is at most a day old, and is not of a future block.

    A future time was recorded by a clock that was ahead. Without the check on blocks, a node that reported a wrong
    block could keep everybody waiting for it.
    """
    of_today = -ASKED_EVERY < (now - earlier.at).total_seconds() < KEPT.total_seconds()
    return earlier.answer is reading.answer and of_today and earlier.block <= (reading.block or 0)


def _later(first: Reading, second: Reading, before: Earlier | None, means: Means, now: datetime) -> float:
    """Return the seconds until a node can confirm its own answer; 0 if it does now."""
    missing = (before.block if before is not None else first.block or 0) - _settled(second)
    if before is None or missing > 0:
        return _seconds(first, max(missing, 1))
    if means.nodes < 2:
        return 0.0
    since = now - before.at
    if before.source != second.source:
        # Another node's answer does not show what has happened since.
        return 0.0 if since <= OTHERS_SILENT else _seconds(first, 1)
    return min(max(0.0, (OTHERS_SILENT - since).total_seconds()), ASKED_EVERY)


def _settled(reading: Reading) -> int:
    """Return the newest block that a second answer settles.

    On Solana this is earlier than the answer's slot, because its index answers only about the newest one.
    """
    chain = CHAINS[reading.requirement.chain]
    return (reading.block or 0) - (0 if chain.family == "evm" else chain.settled_after)


def _seconds(reading: Reading, blocks: int) -> float:
    """Return how many seconds `blocks` of the requirement's chain usually take, plus a margin, at most APART."""
    return min(max(0, blocks) * CHAINS[reading.requirement.chain].block_seconds + 1.0, APART.total_seconds())


def _told(one: Reading | Earlier | None) -> tuple[str, int] | None:
    return None if one is None or one.source is None else (one.source, one.block or 0)


def _unknown(second: Reading, reason: str) -> Reading:
    return Reading(second.requirement, Answer.UNKNOWN, None, second.block, second.source, second.observed_at, reason)


Before = Mapping[str, Earlier]
"""Answers of earlier reconciles, by `question_of` a reading."""


def question_of(reading: Reading) -> str:
    """Return a digest of the requirement, the wallets, and the tokens with traits in a reading."""
    leaf = reading.requirement
    asked: list[object] = [leaf.type, leaf.chain, leaf.contract, leaf.min_tokens, leaf.traits, leaf.token_ids]
    if leaf.max_tokens is not None or leaf.details is not None:
        asked += [leaf.max_tokens, leaf.details.document() if leaf.details is not None else None]
    places = sorted((part.address, part.mark) for part in reading.parts)
    return hashlib.sha256(json.dumps([asked, places, sorted(reading.judged)]).encode()).hexdigest()[:24]


def noted(
    first: Iterable[Reading],
    confirmed: Iterable[Reading],
    before: Before,
    now: datetime,
    means: Callable[[str], Means] | None = None,
) -> dict[str, Earlier]:
    """Return the answers to store for the next reconcile: for each requirement the oldest one that still holds.

    `means` returns a chain's sources.

    An earlier answer is dropped when a second reading at its block or later says something else. An answer that another
    source contradicts is not stored: the silence in which a node may confirm itself has not begun. If only one node
    answers, its own answer replaces another node's that is older than OTHERS_SILENT.
    """
    found: dict[str, Earlier] = {}
    for reading, second in zip(first, confirmed, strict=True):
        if reading.source is None or reading.block is None or reading.answer is Answer.UNKNOWN:
            continue
        question = question_of(reading)
        kept = before.get(question)
        denied = _denies(second, reading)
        usable = kept is not None and _counts(kept, reading, now) and not (denied and (second.block or 0) >= kept.block)
        lone = second.source == reading.source
        if kept is not None and lone and kept.source != reading.source and now - kept.at > OTHERS_SILENT:
            usable = False
        if kept is not None and usable:
            # A node whose block is too old to contradict has spoken all the same, so the silence begins again.
            spoke = denied and not lone and kept.source == reading.source
            found[question] = replace(kept, at=now) if spoke else kept
        elif not denied or lone:
            provider = means(reading.requirement.chain).providers.get(reading.source, "") if means is not None else ""
            found[question] = Earlier(reading.answer, reading.source, reading.block, now, provider)
    return found


def marked(first: Iterable[Reading], confirmed: Iterable[Reading], before: Before, now: datetime) -> dict[str, Earlier]:
    """Return a mark for each answer that another source contradicts; no question finds it, so it confirms nothing.

    By a mark, the ledger stores the readings of a yes that follows (see `opposed_at`): the settled block still had the
    token that was sold, and may be older than its purchase by the same wallet since.
    """
    found: dict[str, Earlier] = {}
    for reading, second in zip(first, confirmed, strict=True):
        if reading.source is None or reading.block is None or reading.answer is Answer.UNKNOWN:
            continue
        if _denies(second, reading):
            mark = question_of(reading) + DENIED
            found[mark] = before.get(mark) or Earlier(reading.answer, reading.source, reading.block, now)
    return found


def _denies(second: Reading, first: Reading) -> bool:
    return second.answer not in {first.answer, Answer.UNKNOWN} or second.reason == CONTRADICTED


def document(found: Before) -> dict[str, Any]:
    """Return the answers in the form that the ledger stores.

    The provider is a part of the key: a version that does not know about it finds no answer, and begins again.
    """
    return {
        f"{question}@{one.provider}" if one.provider else question: [
            one.answer.value, one.source, one.block, one.at.isoformat()
        ]
        for question, one in sorted(found.items())
    }  # fmt: skip


def parsed(text: str) -> dict[str, Earlier]:
    """Parse the JSON that `document` wrote; an empty text has no answers."""
    stored: Mapping[str, Sequence[Any]] = json.loads(text) if text else {}
    found = dict[str, Earlier]()
    for key, (answer, source, block, at) in stored.items():
        question, _, provider = key.partition("@")
        found[question] = Earlier(Answer(answer), str(source), int(block), datetime.fromisoformat(at), provider)
    return found
