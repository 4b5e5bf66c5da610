"""What Health shows of a server: each thing with its state in one word, a sentence, and how to mend it."""

from dataclasses import dataclass
from datetime import datetime

from services.core.json_view import json_view

GOOD, WARNING, BAD, OFF = "good", "warning", "bad", "off"


@json_view
@dataclass(frozen=True, slots=True, kw_only=True)
class HealthLine:
    """`state` is good, warning, bad or off; `text` says why; `mend` says how to mend it, if there is anything to."""

    state: str
    text: str
    mend: str | None = None


@json_view
@dataclass(frozen=True, slots=True, kw_only=True)
class BotHealth(HealthLine):
    """Whether the bot is in the server and listens to Discord."""

    in_server: bool
    connected: bool
    heard_at: datetime | None
    since: datetime | None


@json_view
@dataclass(frozen=True, slots=True)
class MissingPermission:
    """A permission that the bot lacks in the whole server, and what it is for."""

    name: str
    text: str
    mend: str


@json_view
@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionsHealth(HealthLine):
    """What the bot may not do; `known` is false while nobody has looked."""

    known: bool
    missing: tuple[MissingPermission, ...]


@json_view
@dataclass(frozen=True, slots=True)
class RoleProblem:
    """A role of the rules that cannot be given as it is now."""

    role_id: str
    role_name: str
    cause: str
    text: str
    mend: str


@json_view
@dataclass(frozen=True, slots=True, kw_only=True)
class RoleOrderHealth(HealthLine):
    """Whether every role of the rules can be given."""

    problems: tuple[RoleProblem, ...]


@json_view
@dataclass(frozen=True, slots=True, kw_only=True)
class SweepHealth(HealthLine):
    """The daily round over everybody: `members` were due when it began, `left` are still to be looked at."""

    started_at: datetime | None
    finished_at: datetime | None
    next_at: datetime | None
    members: int
    left: int


@json_view
@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderHealth(HealthLine):
    """Somebody else's service. `answers`: ok, stale, down, busy, confused, refused, off or unknown.

    `used` says whether a rule of this server depends on it; `age` is how old its newest block is, in seconds.
    """

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


@json_view
@dataclass(frozen=True, slots=True, kw_only=True)
class LagHealth(HealthLine):
    """How far behind a chain we follow it.

    `block` was looked at last, `behind` counts the newer ones; `seconds` have passed since we last looked.
    """

    chain: str
    block: int
    behind: int
    seconds: int


@json_view
@dataclass(frozen=True, slots=True)
class PausedRule:
    """A rule that is paused, since when and why; `byItself` if it resumes by itself once that is mended."""

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


@json_view
@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerHealth(HealthLine):
    """Removals of a role that were stopped because too many would have lost it at once."""

    role_id: str
    role_name: str
    would_lose: int
    holders: int
    since: datetime


@json_view
@dataclass(frozen=True, slots=True, kw_only=True)
class QueueHealth(HealthLine):
    """Members who wait to be looked at, roles that wait to be written, and how many of each failed before."""

    due: int
    oldest_at: datetime | None
    failing: int
    writes: int
    writes_failing: int


@json_view
@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownReading(HealthLine):
    """Why something could not be read, and for how many members."""

    reason: str
    members: int


@json_view
@dataclass(frozen=True, slots=True, kw_only=True)
class AlertsHealth(HealthLine):
    """Whether alerts reach the admins' log channel."""

    channel_id: str | None
    error: str | None


@json_view
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
