"""The health of a server: the bot, its permissions, roles, providers and our own work, each with a remedy."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlmodel import col, select

from gateways import Gateways
from gateways.discord.types import Role
from locales import N_, _, ngettext, sentences, series
from locales.stored_texts import said
from models import Rule, Server, now
from models.db.session import AsyncSession
from services.core.actors import Actor
from services.core.errors import ProviderUnavailable
from services.core.relative_times import length
from services.guilds import members_intent
from services.guilds import permissions as rights
from services.guilds.gateway import identifies
from services.guilds.role_safety import (
    ADMINISTRATOR,
    MANAGE_ROLES,
    RoleStanding,
    bare,
    find,
    is_too_low,
    judge,
    translated,
)
from services.guilds.verification_channel import EMBED, HISTORY, MANAGE_CHANNELS, SEND, VIEW
from services.health import backlog, provider_health, provider_records, quotas
from services.health.views import (
    BAD,
    GOOD,
    OFF,
    WARNING,
    BotHealth,
    HealthView,
    MissingPermission,
    PermissionsHealth,
    RoleOrderHealth,
    RoleProblem,
    worst,
)
from services.rules import pausing
from services.rules.expression import Requirement, parse_stored, requirements
from services.triggers import chain_cursor, quarantine
from services.triggers.chain_cursor import ANY, COINS, CONTRACTS, WALLETS

NEEDED = {
    N_("Manage Roles"): (MANAGE_ROLES, N_("No role can be given or taken.")),
    N_("Manage Channels"): (MANAGE_CHANNELS, N_("The verification channel cannot be made or repaired.")),
    N_("View Channels"): (VIEW, N_("The bot sees no channel, so it can post no panel and no alert.")),
    N_("Send Messages"): (SEND, N_("Neither the panel nor alerts can be posted.")),
    N_("Embed Links"): (EMBED, N_("The panel and alerts cannot be shown as they should.")),
    N_("Read Message History"): (HISTORY, N_("The panel cannot be found again to be repaired.")),
}
"""The permissions of the server's invite link, except the right to use commands, which people need; and what for."""
_AT_THE_BOTTOM = N_(
    "The bot's own role is below every role that a rule could give, so the bot can give none yet. "
    "Drag it above them in Server Settings › Roles."
)
_BY_THE_OPERATOR = N_("The person who runs the bot has to do that.")


@dataclass(frozen=True, slots=True)
class _Place:
    """The server and, if Discord answers, its roles and the bot's present standing."""

    server: Server
    roles: tuple[Role, ...] | None
    bot: RoleStanding | None


async def view(db: AsyncSession, outside: Gateways, actor: Actor, server_id: int) -> HealthView:
    """Return everything about the server. Raises ServerNotFound unless the actor runs it.

    While Discord does not answer, people who ran the server at its last answer may read this, because they need it
    then. An API token reads members' names only with the scope for members.
    """
    place, named = await _place(db, outside, actor, server_id), actor.reads_members
    moment = now()
    stored = select(Rule).where(Rule.server_id == server_id, col(Rule.deleted_at).is_(None)).order_by(col(Rule.id))
    rules = (await db.exec(stored)).all()
    names = {rule.role_id: rule.role_name for rule in rules}
    states = await provider_records.states(db)
    leaves = (leaf for rule in rules for leaf in requirements(parse_stored(rule.expression)) if not leaf.kind.chainless)
    kinds = {(leaf.chain, _followed_as(leaf)) for leaf in leaves}
    used = frozenset(chain for chain, _ in kinds)
    followed = [
        one
        for one in await chain_cursor.views(db)
        if one.chain in used and (one.kind == CONTRACTS or (one.chain, one.kind) in kinds)
    ]
    bot = _bot(place.server, states, moment, await identifies.warning(db))
    permissions = _permissions(place)
    order = _role_order(place, rules)
    sweep = await backlog.last_sweep(db, moment)
    shown = provider_health.providers(outside, states, used, moment)
    lag = provider_health.lag(
        followed, moment, await quarantine.of_servers(db, [server_id]),
        unreadable=provider_health.unreadable(states, used, moment),
    )  # fmt: skip
    lag += provider_health.left_to_sweeps(used)
    paused = await backlog.paused_rules(db, server_id)
    breakers = await backlog.breakers(db, server_id, names)
    others = await backlog.rivals(db, server_id, named=named)
    truces = await backlog.truces(db, server_id, named=named)
    queue = await backlog.queue(db, server_id, moment)
    unknown = await backlog.unknown(db, server_id)
    alerts = await backlog.alerts(db, place.server)
    reads = await quotas.view(db, moment)
    parts = (
        bot, permissions, order, sweep, *shown, *lag, *paused, *breakers, *others, *truces, queue, *unknown, alerts,
        *reads,
    )  # fmt: skip
    state = worst(*(part.state for part in parts))
    return HealthView(
        state, moment, bot, permissions, order, sweep, shown, lag, paused, breakers, others, truces, queue, unknown,
        alerts, reads,
    )  # fmt: skip


async def _place(db: AsyncSession, outside: Gateways, actor: Actor, server_id: int) -> _Place:
    listed = await rights.is_listed(db, actor, server_id)
    try:
        found = await rights.require_admin(db, outside, actor, server_id, brief=listed)
    except ProviderUnavailable:
        # This is a read, not a change, so people who ran the server at Discord's last answer may see it.
        server = await db.get(Server, server_id)
        if server is None or not listed:
            raise
        return _Place(server, None, None)
    return _Place(found.server, found.guild.roles if found.guild else None, found.bot)


def _followed_as(leaf: Requirement) -> str:
    """Return the kind of following that notices changes to what a requirement counts."""
    if leaf.contract == ANY:
        return WALLETS
    return COINS if leaf.kind.source == "coins" else CONTRACTS


def _bot(server: Server, states: provider_health.States, moment: datetime, scarce: str) -> BotHealth:
    row = states.get(provider_records.BOT)
    fresh = row is not None and not provider_health.bot_is_silent(row, moment)
    connected = fresh and row is not None and row.state == "ok"
    heard = row.checked_at if row else None
    # The provider's row is about the bot's connection, which says nothing about one server.
    since = server.bot_left_at if not server.bot_invited else row.since if row else None

    def health(state: str, text: str, mend: str | None = None) -> BotHealth:
        return BotHealth(
            state=state, text=text, mend=mend, in_server=server.bot_invited, connected=connected, heard_at=heard,
            since=since,
        )  # fmt: skip

    if not server.bot_invited:
        text = _("The bot is not in this server, so no role can be given or taken.")
        mend = _("Invite it from the dashboard; rules paused because of it resume automatically.")
        return health(BAD, text, mend)
    if connected and scarce:
        return health(WARNING, _("The bot is in this server.") + f" {scarce}", _(_BY_THE_OPERATOR))
    if connected and row is not None and row.reason:
        text = _("The bot is in this server.") + f" {said(row.reason)}"
        if row.reason == members_intent.NOT_ASKED:
            return health(GOOD, text)
        return health(WARNING, text, _(_BY_THE_OPERATOR))
    if connected:
        return health(GOOD, _("The bot is in this server and listens."))
    if fresh and row is not None:
        text = _("The bot is not connected to Discord's gateway. Roles still follow the daily sweep.")
        if row.reason:
            text = _("The bot is not connected to Discord's gateway ({reason}). Roles still follow the daily sweep.")
        text = text.format(reason=said(row.reason or ""))
    elif heard is None:
        text = _("The bot does not run. Nobody answers commands or sees who joins.")
    else:
        text = _(
            "The bot does not run; it was last heard from {length} ago. Nobody answers commands or sees who joins."
        )
        text = text.format(length=length((moment - heard).total_seconds()))
    return health(BAD, text, _("It reconnects automatically; if not, tell the person who runs it."))


def _permissions(place: _Place) -> PermissionsHealth:
    if not place.server.bot_invited:
        return PermissionsHealth(state=OFF, text=_("The bot is not in this server."), known=False, missing=())
    bits = place.bot.permissions if place.bot else place.server.bot_permissions
    if bits is None:
        text = _("What the bot may do here is not known yet.")
        return PermissionsHealth(state=WARNING, text=text, known=False, missing=())
    admin = bool(bits & ADMINISTRATOR) or bool(place.bot and place.bot.owner)
    missing = tuple(
        MissingPermission(_(name), _(text), _switch_on(1))
        for name, (bit, text) in NEEDED.items()
        if not (admin or bits & bit)
    )
    if not missing:
        text = _("The bot has every permission that it needs.")
        return PermissionsHealth(state=GOOD, text=text, known=True, missing=())
    lacks = _("The bot lacks {permissions}.").format(permissions=series(one.name for one in missing))
    text = sentences(lacks, *(one.text for one in missing))
    return PermissionsHealth(state=BAD, text=text, mend=_switch_on(len(missing)), known=True, missing=missing)


def _switch_on(count: int) -> str:
    return ngettext(
        "Switch it on for the bot's role in Server Settings › Roles, or invite the bot again.",
        "Switch them on for the bot's role in Server Settings › Roles, or invite the bot again.",
        count,
    )


def _role_order(place: _Place, rules: Sequence[Rule]) -> RoleOrderHealth:
    problems: dict[str, RoleProblem] = {}
    for rule in rules:
        if rule.role_id in problems:
            continue
        if place.roles is not None and place.bot is not None:
            problem = _judged(place.roles, place.server.discord_id, place.bot, rule)
        else:
            problem = _remembered(rule)
        if problem is not None:
            problems[rule.role_id] = problem
    if not rules and _lowest(place):
        return RoleOrderHealth(state=WARNING, text=_(_AT_THE_BOTTOM), problems=())
    if not problems:
        text = _("Every role of the rules can be given.") if rules else _("No rule names a role yet.")
        return RoleOrderHealth(state=GOOD, text=text, problems=())
    found = tuple(problems.values())
    return RoleOrderHealth(state=BAD, text=sentences(*(problem.text for problem in found)), problems=found)


def _lowest(place: _Place) -> bool:
    """Return whether the bot can give no role of the server and its own rank is the reason for some."""
    if place.roles is None or place.bot is None:
        return False
    return is_too_low(place.roles, place.server.discord_id, place.bot)


def _judged(roles: Sequence[Role], guild_id: str, bot: RoleStanding, rule: Rule) -> RoleProblem | None:
    role = find(roles, rule.role_id)
    if role is None:
        return _gone(rule)
    refused = judge(role, guild_id, bot)
    return refused and RoleProblem(
        rule.role_id, role.name, refused.cause, bare(refused.cause, refused.text, role.name), refused.mend
    )


def _gone(rule: Rule) -> RoleProblem:
    text = _("{role} was deleted in Discord.").format(role=rule.role_name)
    mend = _(pausing.mend_of(pausing.GONE))
    return RoleProblem(rule.role_id, rule.role_name, pausing.GONE, text, mend)


def _remembered(rule: Rule) -> RoleProblem | None:
    """Return the problem with the rule's role that the gateway last reported, for use while Discord cannot be asked."""
    cause = rule.pause_cause
    if cause is None or cause in {pausing.AWAY, pausing.REFUSED}:
        return None
    text = bare(cause, translated(rule.pause_reason or rule.role_name, rule.role_name), rule.role_name)
    return RoleProblem(rule.role_id, rule.role_name, cause, text, _(pausing.mend_of(cause)))
