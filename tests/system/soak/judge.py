"""The verdict on the role writes that the product requested, by the sandbox's own request log."""

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tests.system.soak.expected_roles import Pair, Timeline

LATE_WITHIN = 60.0
"""Seconds in which a slow Discord may carry out a request again after its caller gave up: the write may repeat."""
LOOKED_WITHIN = 100.0
"""Seconds before a removal in which its reason may lie: a reconcile on slow nodes, and a minute until it is sent."""
GIVEN_WITHIN = 300.0
"""Seconds before a gift in which its reason may lie: a surplus role harms nobody and is taken again."""
SEEN_WITHIN = 20.0
"""Seconds between a member's reconcile and the removal after it: the ten that a call may take with its retries, and
ten in which the process may be frozen. A member who leaves in that time may get one removal of a role they lost."""
_ROLE_WRITE = re.compile(r"/guilds/(?P<guild>\d+)/members/(?P<who>\d+)/roles/(?P<role>\d+)$")


@dataclass(frozen=True)
class Write:
    """A role given (or taken) at a moment, in seconds since the epoch."""

    moment: float
    pair: Pair
    gives: bool

    def __str__(self) -> str:
        verb = "given to" if self.gives else "taken from"
        return f"role {self.pair[1]} {verb} {self.pair[0]} at {datetime.fromtimestamp(self.moment, UTC):%H:%M:%S.%f}"


def writes(requests: Iterable[dict[str, Any]], guilds: Collection[str]) -> list[Write]:
    """Return the role writes in these guilds that Discord carried out, oldest first."""
    found: list[Write] = []
    for request in requests:
        match = _ROLE_WRITE.search(request["path"].partition("?")[0])
        carried_out = request["status"] == 204 and request["method"] in {"PUT", "DELETE"}
        if request["target"] == "discord" and carried_out and match and match["guild"] in guilds:
            moment = datetime.fromisoformat(request["time"]).timestamp()
            found.append(Write(moment, (match["who"], match["role"]), request["method"] == "PUT"))
    return sorted(found, key=lambda write: write.moment)


def faults(
    done: Sequence[Write],
    timeline: Timeline,
    away: Sequence[tuple[str, float]],
    slow: Sequence[tuple[float, float]] = (),
) -> list[str]:
    """Return the faults of the writes, in sentences.

    `away` are the moments at which a member left the guild; `slow` the periods in which Discord was slow.
    """
    said: list[str] = []
    has: set[Pair] = set()
    left_with: dict[Pair, float] = {}
    leaving = sorted(away, key=lambda item: item[1])
    for write in done:
        while leaving and leaving[0][1] <= write.moment:
            gone, moment = leaving.pop(0)
            left_with.update({pair: moment for pair in has if pair[0] == gone})
            has = {pair for pair in has if pair[0] != gone}
        late = any(
            other.pair == write.pair and other.gives is write.gives and 0 < write.moment - other.moment < LATE_WITHIN
            for other in done
            if any(begun <= other.moment <= ended for begun, ended in slow)
        )
        unseen = not write.gives and write.moment - left_with.pop(write.pair, float("-inf")) < SEEN_WITHIN
        if write.gives is (write.pair in has) and not late and not unseen:
            said.append(f"written twice: {write}; before that {_history(write, done, away)}")
        (has.add if write.gives else has.discard)(write.pair)
        within = GIVEN_WITHIN if write.gives else LOOKED_WITHIN
        if write.gives not in timeline.states(write.pair, write.moment - within, write.moment):
            said.append(f"{'never earned' if write.gives else 'TAKEN THOUGH HELD'}: {write}")
    return said


REFUSALS_BORNE = 1_000
"""Answers of 401, 403 or 429 in ten minutes allowed to all processes together: a tenth of Discord's limit."""
REFUSALS_WITHIN = 600.0


def refusals(requests: Iterable[dict[str, Any]]) -> list[str]:
    """Return a sentence if the refusals in some ten minutes were so many that Discord would soon block us."""
    moments = sorted(
        datetime.fromisoformat(request["time"]).timestamp()
        for request in requests
        if request["target"] == "discord" and request["status"] in {401, 403, 429}
    )
    most = max((at - bisect_left(moments, end - REFUSALS_WITHIN) + 1 for at, end in enumerate(moments)), default=0)
    return [f"Discord refused {most} requests within ten minutes"] if most > REFUSALS_BORNE else []


def _history(write: Write, done: Sequence[Write], away: Sequence[tuple[str, float]]) -> str:
    """Return the history of a role up to one of its writes, for the person who investigates."""
    who, _ = write.pair
    told = [(other.moment, str(other)) for other in done if other.pair == write.pair]
    told += [
        (moment, f"left at {datetime.fromtimestamp(moment, UTC):%H:%M:%S.%f}") for gone, moment in away if gone == who
    ]
    return ", ".join(said for moment, said in sorted(told) if moment < write.moment) or "nothing"
