"""How a server is, for those who run it: each thing with its state, a sentence, and how to mend it."""

from datetime import datetime

from fastapi import APIRouter

from app.api.requests.caller import Caller
from app.api.requests.shapes import ApiAnswer, PathId
from gateways import gateways
from models import transaction
from services.health import server

router = APIRouter(prefix="/servers/{server_id}/health", tags=["server health"])


class LineAnswer(ApiAnswer):
    """`state` is good, warning, bad or off; `text` says why; `mend` says how to mend it, if there is anything to."""

    state: str
    text: str
    mend: str | None = None


class BotAnswer(LineAnswer):
    """Whether the bot is in the server and connected to Discord."""

    in_server: bool
    connected: bool
    heard_at: datetime | None
    since: datetime | None


class MissingPermissionAnswer(ApiAnswer):
    """A permission that the bot lacks."""

    name: str
    text: str
    mend: str


class PermissionsAnswer(LineAnswer):
    """What the bot may not do; `known` is false while nobody has looked."""

    known: bool
    missing: list[MissingPermissionAnswer]


class RoleProblemAnswer(ApiAnswer):
    """A role of the rules that cannot be given as it is now."""

    role_id: str
    role_name: str
    cause: str
    text: str
    mend: str


class RoleOrderAnswer(LineAnswer):
    """Whether every role of the rules can be given."""

    problems: list[RoleProblemAnswer]


class SweepAnswer(LineAnswer):
    """The daily round: how many members were due when it began, and how many are left."""

    started_at: datetime | None
    finished_at: datetime | None
    next_at: datetime | None
    members: int
    left: int


class ProviderAnswer(LineAnswer):
    """A provider; `answers` is ok, stale, down, busy, confused, refused, off or unknown.

    `age` is how old its newest block is, in seconds; `used` whether a rule of this server depends on it.
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


class LagAnswer(LineAnswer):
    """How far behind a chain we follow it, in blocks; `seconds` since we last looked."""

    chain: str
    block: int
    behind: int
    seconds: int


class PausedRuleAnswer(ApiAnswer):
    """A rule that rests; `byItself` when it resumes by itself once that is mended."""

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


class BreakerHealthAnswer(LineAnswer):
    """Removals of a role that wait for an admin."""

    role_id: str
    role_name: str
    would_lose: int
    holders: int
    since: datetime


class QueueAnswer(LineAnswer):
    """Members who wait to be looked at, roles that wait to be written, and how many of each failed before."""

    due: int
    oldest_at: datetime | None
    failing: int
    writes: int
    writes_failing: int


class UnknownAnswer(LineAnswer):
    """Why something could not be read, and for how many members."""

    reason: str
    members: int


class AlertsAnswer(LineAnswer):
    """Whether alerts reach the admins' log channel."""

    channel_id: str | None
    error: str | None


class ServerHealthAnswer(ApiAnswer):
    """Everything about one server's health; `state` is the worst of all."""

    state: str
    checked_at: datetime
    bot: BotAnswer
    permissions: PermissionsAnswer
    role_order: RoleOrderAnswer
    last_sweep: SweepAnswer
    providers: list[ProviderAnswer]
    lag: list[LagAnswer]
    paused_rules: list[PausedRuleAnswer]
    breakers: list[BreakerHealthAnswer]
    queue: QueueAnswer
    unknown: list[UnknownAnswer]
    alerts: AlertsAnswer


@router.get("")
async def look(caller: Caller, server_id: PathId) -> ServerHealthAnswer:
    """Bot, permissions, role order, providers, lag, last round, what rests and why, each with how to mend it."""
    async with transaction() as db:
        return ServerHealthAnswer.model_validate(await server.look(db, gateways(), caller, server_id))
