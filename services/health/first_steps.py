"""The checklist of a new server: what is left to do until its first member is verified.

Everything comes from our own tables: what the bot last heard from Discord, the rules, and the counts.
"""

from dataclasses import dataclass

from sqlmodel import col, select

from gateways import Gateways
from locales import _
from models import Rule, Server
from models.db.session import AsyncSession
from services.core.actors import Actor
from services.core.errors import ServerNotFound
from services.guilds import permissions
from services.servers import verified_counts
from settings import settings

BOT, ORDER, RULE, CHANNEL, MEMBER = "bot", "order", "rule", "channel", "member"
_RANK_CAUSES = ("above_bot", "manage_roles")
"""The causes of a pause that lie in the bot's own role."""


@dataclass(frozen=True, slots=True)
class FirstStep:
    """One step: `key` is BOT, ORDER, RULE, CHANNEL or MEMBER; `text` says what to do, or what is done."""

    key: str
    title: str
    text: str
    done: bool


async def view(db: AsyncSession, outside: Gateways, actor: Actor, server_id: int) -> tuple[FirstStep, ...]:
    """Return the steps in order, for a person who runs the server; none once all are done or the list is hidden.

    Raises ServerNotFound, ProviderUnavailable.
    """
    server = await permissions.find_server(db, server_id)
    if server is None:
        raise ServerNotFound
    steps = () if server.steps_hidden else await _steps(db, server)
    if all(step.done for step in steps):
        return ()
    await permissions.require_admin_to_read(db, outside, actor, server_id)
    return steps


async def hide(db: AsyncSession, outside: Gateways, actor: Actor, server_id: int) -> None:
    """Hide the checklist from all who run the server. Raises ServerNotFound, ProviderUnavailable."""
    found = await permissions.require_admin(db, outside, actor, server_id)
    found.server.steps_hidden = True
    db.add(found.server)


async def _steps(db: AsyncSession, server: Server) -> tuple[FirstStep, ...]:
    server_id = server.id or 0
    rows = await db.exec(
        select(Rule.role_name, Rule.pause_cause)
        .where(Rule.server_id == server_id, col(Rule.deleted_at).is_(None))
        .order_by(col(Rule.id))
    )
    rules = rows.all()
    blocked = [name for name, cause in rules if cause in _RANK_CAUSES]
    verified = (await verified_counts.by_server(db, [server_id])).get(server_id, 0)
    return (
        _bot(server.bot_invited),
        _order(server, bool(rules), blocked),
        _rule(bool(rules)),
        _channel(server.verify_channel_id is not None),
        _member(verified > 0),
    )


def _bot(done: bool) -> FirstStep:
    said = _("{bot} is in your server.") if done else _("Invite {bot} to your server.")
    return FirstStep(BOT, _("Invite the bot"), said.format(bot=settings().bot_name), done)


def _order(server: Server, has_rules: bool, blocked: list[str]) -> FirstStep:
    done = server.bot_invited and not blocked and (has_rules or server.bot_too_low is False)
    return FirstStep(ORDER, _("Move the bot's role up"), _about_the_order(server, has_rules, blocked), done)


def _about_the_order(server: Server, has_rules: bool, blocked: list[str]) -> str:
    if not server.bot_invited:
        return _("The bot can only give roles that are below its own.")
    if blocked:
        return _(
            "In Discord, open Server Settings › Roles and drag the bot's role above {role}, so that your rule can give "
            "that role."
        ).format(role=blocked[0])
    if has_rules:
        return _("The bot's role is above every role that your rules give.")
    if server.bot_too_low is None:
        return _("Not known yet: the bot has not read your server's roles.")
    if server.bot_too_low:
        return _(
            "In Discord, open Server Settings › Roles and drag the bot's role above the roles that it should give."
        )
    return _("The bot's role is above roles that it can give.")


def _rule(done: bool) -> FirstStep:
    to_do = _("A rule says what somebody has to hold, and which role that gives.")
    return FirstStep(RULE, _("Add your first rule"), _("Your server has a rule.") if done else to_do, done)


def _channel(done: bool) -> FirstStep:
    to_do = _("Members verify their wallets in it. The bot makes it with one press.")
    text = _("The verification channel is there.") if done else to_do
    return FirstStep(CHANNEL, _("Create the verification channel"), text, done)


def _member(done: bool) -> FirstStep:
    to_do = _("Members press Verify in the channel. You can be the first.")
    text = _("Somebody has verified a wallet.") if done else to_do
    return FirstStep(MEMBER, _("See the first member verified"), text, done)
