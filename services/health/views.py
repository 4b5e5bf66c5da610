"""What Health shows of a server: each thing with its state in one word, a sentence, and how to mend it."""

from dataclasses import dataclass
from datetime import datetime

GOOD, WARNING, BAD, OFF = "good", "warning", "bad", "off"


@dataclass(frozen=True, slots=True)
class BotHealth:
    """Whether the bot is in the server and listens to Discord."""

    state: str
    in_server: bool
    connected: bool
    heard_at: datetime | None
    since: datetime | None
    text: str
    mend: str | None


@dataclass(frozen=True, slots=True)
class MissingPermission:
    """A permission that the bot lacks in the whole server, and what it is for."""

    name: str
    text: str
    mend: str


@dataclass(frozen=True, slots=True)
class PermissionsHealth:
    """What the bot may not do; `known` is False while nobody has looked."""

    state: str
    known: bool
    missing: tuple[MissingPermission, ...]
    text: str
    mend: str | None


@dataclass(frozen=True, slots=True)
class RoleProblem:
    """A role of the rules that cannot be given as it is now."""

    role_id: str
    role_name: str
    cause: str
    text: str
    mend: str


@dataclass(frozen=True, slots=True)
class RoleOrderHealth:
    """Whether every role of the rules can be given."""

    state: str
    problems: tuple[RoleProblem, ...]
    text: str


@dataclass(frozen=True, slots=True)
class SweepHealth:
    """The daily round over everybody: `members` were due when it began, `left` are still to be looked at."""

    state: str
    started_at: datetime | None
    finished_at: datetime | None
    next_at: datetime | None
    members: int
    left: int
    text: str
    mend: str | None


@dataclass(frozen=True, slots=True)
class ProviderHealth:
    """Somebody else's service. `answers`: ok, stale, down, busy, confused, refused, off or unknown.

    `used` says whether a rule of this server depends on it; `age` is how old its newest block is, in seconds.
    """

    state: str
    provider: str
    name: str
    kind: str
    chain: str | None
    answers: str
    since: datetime | None
    checked_at: datetime | None
    block: int | None
    age: int | None
    reason: str | None
    used: bool
    text: str
    mend: str | None


@dataclass(frozen=True, slots=True)
class LagHealth:
    """How far behind a chain we follow it: the last block that was looked at, and how many newer ones there are."""

    state: str
    chain: str
    block: int
    behind: int
    seconds: int
    text: str


@dataclass(frozen=True, slots=True)
class PausedRule:
    """A rule that rests, since when and why; `by_itself` says that it resumes by itself once that is mended."""

    state: str
    id: int
    name: str
    role_id: str
    role_name: str
    since: datetime | None
    cause: str
    reason: str
    mend: str
    by_itself: bool


@dataclass(frozen=True, slots=True)
class BreakerHealth:
    """Removals of a role that were stopped because too many would have lost it at once."""

    state: str
    role_id: str
    role_name: str
    would_lose: int
    holders: int
    since: datetime
    text: str
    mend: str


@dataclass(frozen=True, slots=True)
class QueueHealth:
    """Members who wait to be looked at, and roles that wait to be written."""

    state: str
    due: int
    oldest_at: datetime | None
    failing: int
    writes: int
    writes_failing: int
    text: str
    mend: str | None


@dataclass(frozen=True, slots=True)
class UnknownReading:
    """Why something could not be read, and for how many members."""

    state: str
    reason: str
    members: int
    text: str


@dataclass(frozen=True, slots=True)
class AlertsHealth:
    """Whether alerts reach the admins' log channel."""

    state: str
    channel_id: str | None
    error: str | None
    text: str
    mend: str | None


@dataclass(frozen=True, slots=True)
class HealthView:
    """Everything about one server's health at one moment; `state` is the worst of all."""

    state: str
    checked_at: datetime
    bot: BotHealth
    permissions: PermissionsHealth
    role_order: RoleOrderHealth
    last_sweep: SweepHealth
    providers: tuple[ProviderHealth, ...]
    lag: tuple[LagHealth, ...]
    paused_rules: tuple[PausedRule, ...]
    breakers: tuple[BreakerHealth, ...]
    queue: QueueHealth
    unknown: tuple[UnknownReading, ...]
    alerts: AlertsHealth


def worst(*states: str) -> str:
    """The most urgent of these."""
    return next((state for state in (BAD, WARNING) if state in states), GOOD)


def ago(seconds: float) -> str:
    """A length of time in a few words: "12 seconds", "5 minutes", "3 hours", "2 days"."""
    for size, name in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {name}" + ("" if count == 1 else "s")
    count = max(0, int(seconds))
    return f"{count} second" + ("" if count == 1 else "s")
