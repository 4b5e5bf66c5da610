"""What confirms an answer that would take a role: a second answer that depends on nothing the first one did; pure.

Two nodes are two sources, and so is one node twice if the blocks of a confirmation lie between both answers. Two
answers of the same index or marketplace are one source, unless there is no other and some time lies between them.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from gateways.chains.catalogue import CHAINS
from gateways.chains.indexer import LISTS
from services.core.answer import Answer
from services.holdings.evaluate import Reading

OTHERS_SILENT = timedelta(minutes=5)
"""How long the other nodes of a chain have to be silent before one node may confirm its own answer at a later block."""
APART = timedelta(minutes=10)
"""The least time between two answers of a source that is the only one, and between two looks at indexers' lists."""
ASKED_EVERY = 60.0
"""Seconds after which nodes that are silent are asked again, at the most."""
NOT_SETTLED = "not settled yet"
CONTRADICTED = "two readings disagree"
KEPT = timedelta(days=1)
"""How long a first answer waits for the one that confirms it."""


@dataclass(frozen=True, slots=True)
class Means:
    """What a chain can be asked by: how many nodes are set for it, and how many sources tell its tokens' traits."""

    nodes: int
    trait_sources: int


@dataclass(frozen=True, slots=True)
class Earlier:
    """An answer that an earlier look got: by which node, at which block, and when."""

    answer: Answer
    source: str
    block: int
    at: datetime


@dataclass(frozen=True, slots=True)
class Confirmation:
    """Both answers as one. Where time alone is missing, `wait` is how many seconds of it, and `why` the reason."""

    reading: Reading
    wait: float | None = None


def confirm(first: Reading, second: Reading, earlier: Earlier | None, means: Means, now: datetime) -> Confirmation:
    """Return the second answer if it confirms the first one, else unknown.

    `second` is of a settled block. `earlier` is an answer that an earlier look got to the same question.
    """
    if first.answer is not second.answer:
        unsettled = (first.block or 0) - _settled(second)
        moved = Answer.UNKNOWN not in {first.answer, second.answer} and unsettled > 0
        reason = second.reason or (NOT_SETTLED if moved else CONTRADICTED)
        return Confirmation(_unknown(second, reason), _seconds(first, unsettled) if moved else None)
    if second.answer is Answer.UNKNOWN or second.source is None or second.block is None:
        return Confirmation(second)
    before = earlier if earlier is not None and _counts(earlier, first, now) else None
    if first.source == second.source and (wait := _later(first, second, before, means, now)) > 0:
        return Confirmation(_unknown(second, "waiting for a later block to confirm"), wait)
    if second.requirement.type == "trait" and _of_other_tokens(first, second):
        unsettled = (first.block or 0) - _settled(second)
        return Confirmation(_unknown(second, NOT_SETTLED), _seconds(first, unsettled) if unsettled > 0 else None)
    twice = first.alone & second.alone
    if not twice:
        other = first if first.source != second.source else before
        alone = other is not None and other.source == second.source
        return Confirmation(replace(second, first=_told(other), one_source=alone))
    source = min(source for _, source in twice)
    lists = source == LISTS
    if not lists and (second.requirement.type != "trait" or means.trait_sources > 1):
        return Confirmation(_unknown(second, f"only {source} answered, and alone it proves nothing"))
    since = now - before.at if before is not None else timedelta(0)
    if since < APART:
        return Confirmation(_unknown(second, f"waiting to ask {source} again"), (APART - since).total_seconds())
    return Confirmation(replace(second, first=_told(before), one_source=not lists))


def second_of(first: Reading, said: Sequence[Reading], earlier: Earlier | None, means: Means, now: datetime) -> Reading:
    """Return which of the second answers counts: those of other nodes come first, that of the first one's node last.

    One that is another answer counts before all that confirm. A node that answers in part is unable to say. It keeps
    nobody else from confirming, unless what it does know is against what they say: then nothing is known.
    """
    sure = [one for one in said if one.answer is not Answer.UNKNOWN]
    if first.answer is not Answer.UNKNOWN and (other := [one for one in sure if one.answer is not first.answer]):
        return other[0]
    confirming = (one for one in sure if confirm(first, one, earlier, means, now).reading.answer is not Answer.UNKNOWN)
    whole = (one for one in sure if not is_partial(one))
    second = [*confirming, *whole, *sure, *said][0]
    others = (one for one in said if one is not second and is_partial(one))
    against = next((one for one in others if _speaks_against(one, second)), None)
    return second if against is None else replace(against, answer=Answer.UNKNOWN, reason=CONTRADICTED)


def is_partial(reading: Reading) -> bool:
    """Whether something is not known of a wallet, so that another node may know more."""
    return reading.answer is Answer.UNKNOWN or any(part.reason is not None for part in reading.parts)


def _speaks_against(partial: Reading, sure: Reading) -> bool:
    """Whether what a node knows of some wallets is against what another one says of them."""
    amounts = {(part.address, part.through, part.mark): part.amount for part in sure.parts}
    for part in partial.parts:
        amount = amounts.get((part.address, part.through, part.mark))
        if amount is None or part.amount > amount or (part.reason is None and part.amount < amount):
            return True
    return False


def _of_other_tokens(first: Reading, second: Reading) -> bool:
    """Whether one answer depends on what a single source says of a token that the other answer does not have.

    It may have come after the settled block; or one node alone denies the token, and one marketplace its trait.
    """
    pairs = ((first, second), (second, first))
    return any(token not in other.judged for one, other in pairs for token, _ in one.alone)


def _counts(earlier: Earlier, reading: Reading, now: datetime) -> bool:
    """Whether an earlier answer was the same, is no older than a day, and is of no block that nobody has seen yet.

    One of a time to come was noted by a clock that was ahead. A node that named a wrong block could otherwise keep
    everybody waiting for it.
    """
    of_today = -ASKED_EVERY < (now - earlier.at).total_seconds() < KEPT.total_seconds()
    return earlier.answer is reading.answer and of_today and earlier.block <= (reading.block or 0)


def _later(first: Reading, second: Reading, before: Earlier | None, means: Means, now: datetime) -> float:
    """Seconds until a node's answer can confirm what the same node said; 0 when it does."""
    missing = (before.block if before is not None else first.block or 0) - _settled(second)
    if before is None or missing > 0:
        return _seconds(first, max(missing, 1))
    if means.nodes < 2:
        return 0.0
    since = now - before.at
    if before.source != second.source:
        # What another node said says nothing of what has happened since.
        return 0.0 if since <= OTHERS_SILENT else _seconds(first, 1)
    return min(max(0.0, (OTHERS_SILENT - since).total_seconds()), ASKED_EVERY)


def _settled(reading: Reading) -> int:
    """The newest block that is settled by a second answer; Solana's index cannot be asked about an earlier slot."""
    chain = CHAINS[reading.requirement.chain]
    return (reading.block or 0) - (0 if chain.family == "evm" else chain.settled_after)


def _seconds(reading: Reading, blocks: int) -> float:
    """How long so many blocks of a requirement's chain usually take, and a moment more; at most as long as APART."""
    return min(max(0, blocks) * CHAINS[reading.requirement.chain].block_seconds + 1.0, APART.total_seconds())


def _told(one: Reading | Earlier | None) -> tuple[str, int] | None:
    return None if one is None or one.source is None else (one.source, one.block or 0)


def _unknown(second: Reading, reason: str) -> Reading:
    return Reading(
        second.requirement, Answer.UNKNOWN, second.needed, None, second.block, second.source, second.observed_at, reason
    )


Before = Mapping[str, Earlier]
"""What earlier looks said, by `question_of` a reading."""


def question_of(reading: Reading) -> str:
    """A short text that is the same for the same requirement, the same wallets, and the same tokens with traits."""
    leaf = reading.requirement
    asked = [leaf.type, leaf.chain, leaf.contract, leaf.min_tokens, leaf.trait, leaf.token_ids]
    places = sorted((part.address, part.mark) for part in reading.parts)
    return hashlib.sha256(json.dumps([asked, places, sorted(reading.judged)]).encode()).hexdigest()[:24]


def noted(first: Iterable[Reading], confirmed: Iterable[Reading], before: Before, now: datetime) -> dict[str, Earlier]:
    """Return what the next look is to know of these answers: of each question the oldest answer that is still the same.

    An earlier answer is dropped when a second reading at its block, or a later one, said something else. What another
    node contradicts is not noted: the silence in which a node may confirm itself has not begun. Of a node that alone
    answers, its own answer is noted once the other's is too old to confirm it.
    """
    found: dict[str, Earlier] = {}
    for reading, second in zip(first, confirmed, strict=True):
        if reading.source is None or reading.block is None or reading.answer is Answer.UNKNOWN:
            continue
        question = question_of(reading)
        kept = before.get(question)
        denied = second.answer not in {reading.answer, Answer.UNKNOWN} or second.reason == CONTRADICTED
        usable = kept is not None and _counts(kept, reading, now) and not (denied and (second.block or 0) >= kept.block)
        lone = second.source == reading.source
        if kept is not None and lone and kept.source != reading.source and now - kept.at > OTHERS_SILENT:
            usable = False
        if kept is not None and usable:
            found[question] = kept
        elif not denied or lone:
            found[question] = Earlier(reading.answer, reading.source, reading.block, now)
    return found


def document(found: Before) -> dict[str, Any]:
    """The answers as the ledger keeps them."""
    return {
        question: [one.answer.value, one.source, one.block, one.at.isoformat()]
        for question, one in sorted(found.items())
    }


def parsed(text: str) -> dict[str, Earlier]:
    """Read what `document` wrote, as JSON; nothing from an empty text."""
    stored: Mapping[str, Sequence[Any]] = json.loads(text) if text else {}
    return {
        question: Earlier(Answer(answer), str(source), int(block), datetime.fromisoformat(at))
        for question, (answer, source, block, at) in stored.items()
    }
