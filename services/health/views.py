"""The views of a server's health: each item has a state, a sentence and a remedy."""

from datetime import datetime

from services.core.json_view import json_view

GOOD, WARNING, BAD, OFF = "good", "warning", "bad", "off"


@json_view(kw_only=True)
class HealthLine:
    """`state` is good, warning, bad or off; `text` says why; `mend` is the remedy, if there is one."""

    state: str
    text: str
    mend: str | None = None


@json_view(kw_only=True)
class BotHealth(HealthLine):
    """Whether the bot is in the server and connected to Discord."""

    in_server: bool
    connected: bool
    heard_at: datetime | None
    since: datetime | None


@json_view
class MissingPermission:
    """A permission that the bot lacks in the whole server, and its purpose."""

    name: str
    text: str
    mend: str


@json_view(kw_only=True)
class PermissionsHealth(HealthLine):
    """Permissions that the bot lacks; `known` is false before the first check."""

    known: bool
    missing: tuple[MissingPermission, ...]


@json_view
class RoleProblem:
    """A role of the rules that cannot be given at present."""

    role_id: str
    role_name: str
    cause: str
    text: str
    mend: str


@json_view(kw_only=True)
class RoleOrderHealth(HealthLine):
    """Whether every role of the rules can be given."""

    problems: tuple[RoleProblem, ...]


@json_view(kw_only=True)
class SweepHealth(HealthLine):
    """The daily sweep: `members` were due when it began, `left` still wait."""

    started_at: datetime | None
    finished_at: datetime | None
    next_at: datetime | None
    members: int
    left: int


@json_view(kw_only=True)
class ProviderHealth(HealthLine):
    """A provider. `answers`: ok, stale, down, busy, confused, refused, off or unknown.

    `used` says whether a rule of this server depends on it; `age` is the age of its newest block in seconds.
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


@json_view(kw_only=True)
class LagHealth(HealthLine):
    """How far behind a chain its follower is.

    `kind` is what it follows: `contracts`, members' `wallets` or `coins`; empty for a chain that is left to sweeps.
    `block` was read last, `behind` counts the newer ones; `seconds` have passed since the last poll.
    """

    chain: str
    kind: str
    block: int
    behind: int
    seconds: int


@json_view
class PausedRule:
    """A paused rule, since when and why; `byItself` if it resumes automatically after the remedy."""

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


@json_view(kw_only=True)
class BreakerHealth(HealthLine):
    """Removals of a role that were stopped because too many members would have lost it at once."""

    role_id: str
    role_name: str
    would_lose: int
    holders: int
    since: datetime


@json_view(kw_only=True)
class QueueHealth(HealthLine):
    """Members who wait to be reconciled, role changes that wait, and how many of each have failed before."""

    due: int
    oldest_at: datetime | None
    failing: int
    writes: int
    writes_failing: int


@json_view(kw_only=True)
class UnknownReading(HealthLine):
    """Why something could not be read, and for how many members."""

    reason: str
    members: int


@json_view(kw_only=True)
class AlertsHealth(HealthLine):
    """Whether alerts reach the admins' log channel."""

    channel_id: str | None
    error: str | None


@json_view
class QuotaShare:
    """How much one use of a marketplace's key may read now; `backAt` is when it may read again if that is nothing."""

    use: str
    name: str
    left: int
    back_at: datetime | None


@json_view(kw_only=True)
class QuotaHealth(HealthLine):
    """The reads of a marketplace's key: `left` of `reads` in its window, which ends at `backAt`.

    The shares overlap: reads that are reserved for no use count in each of them.
    """

    provider: str
    name: str
    reads: int
    left: int
    back_at: datetime | None
    shares: tuple[QuotaShare, ...]


@json_view(kw_only=True)
class RivalHealth(HealthLine):
    """A rival that gave or took a role within a day: how often, and the newest times.

    `name` is null while it is unknown, and a person's name and id also for a token without the scope for members;
    `against` says whether the rival reversed our changes.
    """

    role_id: str
    role_name: str
    actor_id: str | None
    name: str | None
    bot: bool
    took: int
    gave: int
    against: bool
    first_at: datetime
    last_at: datetime
    times: tuple[datetime, ...]


@json_view
class LeftAlone:
    """A member whose role is left alone."""

    discord_id: str
    name: str
    until: datetime


@json_view(kw_only=True)
class TruceHealth(HealthLine):
    """A role that we neither give to nor take from some members until a time; at most 20 of `total` are named."""

    role_id: str
    role_name: str
    total: int
    since: datetime
    until: datetime
    members: tuple[LeftAlone, ...]


@json_view
class HealthView:
    """A server's health at one moment; `state` is the worst of all."""

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
    rivals: tuple[RivalHealth, ...]
    truces: tuple[TruceHealth, ...]
    queue: QueueHealth
    unknown: tuple[UnknownReading, ...]
    alerts: AlertsHealth
    quotas: tuple[QuotaHealth, ...]


def worst(*states: str) -> str:
    """Return the most urgent of these states."""
    return next((state for state in (BAD, WARNING) if state in states), GOOD)
