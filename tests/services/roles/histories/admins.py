"""The steps of admins, and of what happens to the server: rules, protections, the breaker, undoing, moves, the bot."""

from datetime import datetime, timedelta
from uuid import UUID

from sqlmodel import col, select

from models import Event, Server, transaction
from models.db.session import AsyncSession
from services.guilds import rivals
from services.roles import breaker
from services.roles.moves import lifecycle
from services.roles.moves.lifecycle import MoveOrder
from services.rules import pausing, rules
from services.rules.draft import RuleDraft
from services.rules.expression import AtLeast, to_document
from services.rules.replacements import new_role
from services.rules.replacements.new_role import RoleOrder
from services.rules.views import RuleView
from services.servers import protection, undo
from services.triggers import gateway_events
from tests.services.roles.histories.discord import GOLD, NAMES, ROLES, SILVER
from tests.services.roles.histories.history import TREES, History, Step
from tests.services.roles.histories.members import HEARD

MOVE = timedelta(hours=1)
MOST_RULES = 7
SELDOM = 0.4
"""How likely a step that could stop all removals does so. Its opposite always happens: most of the time roles move."""


async def _change_rule(history: History, **changes: object) -> None:
    rule = history.random.choice(history.rules)
    outside, admin = history.outside, history.admin
    said = f"rule {rule}: {', '.join(f'{name} {value}' for name, value in changes.items())}"
    await history.change(said, lambda db: rules.change(db, outside, admin, rule, changes))


async def pause_a_rule(history: History) -> None:
    await _change_rule(history, state="paused")


async def resume_a_rule(history: History) -> None:
    await _change_rule(history, state="active")


async def change_the_role_of_a_rule(history: History) -> None:
    await _change_rule(history, roleId=history.random.choice(ROLES))


async def put_a_rule_in_shadow(history: History) -> None:
    await _change_rule(history, state="shadow")


async def change_what_a_rule_asks_for(history: History) -> None:
    rule, words = history.random.choice(history.rules), history.random.choice(list(TREES))
    changes = {"expression": to_document(TREES[words])}
    outside, admin = history.outside, history.admin
    await history.change(f"rule {rule}: {words}", lambda db: rules.change(db, outside, admin, rule, changes))


async def make_a_rule(history: History) -> None:
    if len(history.rules) >= MOST_RULES:
        return
    words, role = history.random.choice(list(TREES)), history.random.choice(ROLES)
    draft = RuleDraft(
        rule_name=words, contract_address="", blockchain="", verification_type="", role_id=role,
        server_id=history.server, expression=to_document(AtLeast(1, (TREES[words],))),
        takes_over=history.random.random() < 0.3,
    )  # fmt: skip
    made: list[RuleView] = []

    async def create(db: AsyncSession) -> None:
        made.append(await rules.create(db, history.outside, history.admin, draft))

    if await history.change(f"a rule for {NAMES[role]}: {words}", create):
        history.rules.append(made[0].id)


async def replace_a_role(history: History) -> None:
    """Let all rules for one role give the other."""
    old, new = history.random.sample(ROLES, 2)
    outside, admin, server = history.outside, history.admin, history.server
    said = f"{NAMES[new]} in the place of {NAMES[old]}"
    await history.change(said, lambda db: new_role.apply(db, outside, admin, server, RoleOrder(old, new)))


async def take_over_or_not(history: History) -> None:
    await _change_rule(history, takesOver=history.random.random() < 0.5)


async def change_the_removal_of_a_rule(history: History) -> None:
    await _change_rule(history, removal=history.random.choice(({"mode": "now"}, {"mode": "grace", "hours": 1})))


async def delete_or_restore_a_rule(history: History) -> None:
    """Delete a rule, or undo its deletion."""
    rule = history.random.choice(history.rules)
    async with transaction() as db:
        is_there = any(one.id == rule for one, _ in await history.living_rules(db))
        of_rule = select(Event.batch).where(Event.kind == "rule.deleted", Event.rule_id == rule)
        batch = (await db.exec(of_rule.order_by(col(Event.id).desc()).limit(1))).first()
    if is_there:
        outside, admin = history.outside, history.admin
        await history.change(f"rule {rule} deleted", lambda db: rules.delete(db, outside, admin, rule))
    elif batch is not None:
        # Its deletion may have been undone before: the latest one has not.
        await history.change(f"rule {rule} restored", lambda db: _undo(db, history, batch))


async def _undo(db: AsyncSession, history: History, batch: UUID) -> None:
    await undo.undo(db, history.outside, history.admin, history.server, batch)


async def undo_something(history: History) -> None:
    """Undo any batch of the log that was not undone: removals, roles that others took, changes and pauses of rules."""
    async with transaction() as db:
        undone = select(Event.batch).where(Event.kind == undo.UNDONE)
        rows = await db.exec(
            select(Event)
            .where(col(Event.kind).in_(undo.VERBS), col(Event.batch).is_not(None), col(Event.batch).not_in(undone))
            .order_by(col(Event.id))
        )
        kinds = {one.batch: one.kind for one in rows.all() if one.batch is not None}
    if kinds:
        batch = history.random.choice(list(kinds))
        await history.change(f"{kinds[batch]} undone", lambda db: _undo(db, history, batch))


async def protect_or_not(history: History) -> None:
    """Begin or end the protection of a member or a role."""
    outside, admin, server = history.outside, history.admin, history.server
    on = history.random.random() < SELDOM
    if history.random.random() < 0.5:
        who = history.anybody()
        said = f"{history.name(who)} protected: {on}"
        await history.change(said, lambda db: protection.of_member(db, outside, admin, server, who, on))
    else:
        role = history.random.choice(ROLES)
        said = f"{NAMES[role]} protected: {on}"
        await history.change(said, lambda db: protection.of_role(db, outside, admin, server, role, on))


async def answer_the_breaker(history: History) -> None:
    """Approve or dismiss the removals that wait, of one role or of all."""
    verb, role = history.random.choice((breaker.approve, breaker.dismiss)), history.random.choice((None, *ROLES))
    async with transaction() as db:
        roles = await verb(db, history.server, history.discord.owner, role)
        history.say(f"  {verb.__name__} the removals of {roles} roles")
        await breaker.end_idle(db)


async def end_a_truce(history: History) -> None:
    """Let the rules decide again about roles that are left alone because of rivals."""
    role = history.random.choice(ROLES)
    async with transaction() as db:
        ended = await rivals.end(db, history.server, role)
    history.say(f"  {len(ended)} truces about {NAMES[role]} end")


async def pause_or_resume_a_role(history: History) -> None:
    """Let the product notice that the bot may no longer give a role, or may again."""
    role, pauses = history.random.choice(ROLES), history.random.random() < SELDOM
    history.say(f"  {NAMES[role]} is {'above' if pauses else 'below'} the bot")
    async with transaction() as db:
        if pauses:
            await pausing.pause_role(db, history.server, role, "above the bot", "above_bot")
        else:
            await pausing.roles_judged(db, history.server, resumed=[role])


async def delete_or_make_a_role(history: History) -> None:
    """Delete a role in Discord, or make it again: that stands for another role that the rules get in its place."""
    discord, role = history.discord, history.random.choice(ROLES)
    if role in discord.deleted:
        await make_again(history, role)
    elif history.random.random() < SELDOM:
        heard = history.random.random() < HEARD
        history.say(f"  {NAMES[role]} is deleted, heard: {heard}")
        discord.delete(role)
        if heard:
            async with transaction() as db:
                await gateway_events.check_roles(db, discord.guild_facts())


async def make_again(history: History, role: str) -> None:
    """Make a role again, unless a change of the deleted one is under way."""
    discord = history.discord
    if discord.is_asked_about(role):
        return
    history.say(f"  {NAMES[role]} is made again")
    # That it was deleted may not have been heard, and what is stored of that role is not about this one.
    async with transaction() as db:
        await pausing.role_gone(db, history.server, role)
    discord.deleted.discard(role)
    async with transaction() as db:
        await gateway_events.check_roles(db, discord.guild_facts())


async def move(history: History) -> None:
    """Begin a move from another bot, change it, approve its end, cancel it, or undo it."""
    outside, admin, server = history.outside, history.admin, history.server
    async with transaction() as db:
        newest, now = await lifecycle.newest(db, server), await db.now()
    if newest is None:
        order = _order(history, now, now + history.random.choice((timedelta(0), MOVE / 2)))
        said = f"a move of {', '.join(NAMES[one] for one in order.roles)} begins"
        await history.change(said, lambda db: lifecycle.begin_or_change(db, outside, admin, server, order))
    elif newest.state == "open" and history.random.random() < 0.3:
        order = _order(history, now, None)
        said = f"the move is one of {', '.join(NAMES[one] for one in order.roles)}"
        await history.change(said, lambda db: lifecycle.begin_or_change(db, outside, admin, server, order))
    elif newest.state == "open" and history.random.random() < 0.6:
        await history.change("the end of the move approved", lambda db: lifecycle.approve(db, outside, admin, server))
    else:
        await history.change("the move undone", lambda db: lifecycle.undo(db, outside, admin, server))


def _order(history: History, now: datetime, begins_at: datetime | None) -> MoveOrder:
    return MoveOrder(now + MOVE, history.random.choice(((GOLD,), (SILVER,), ROLES)), begins_at)


async def bot_leaves_or_returns(history: History) -> None:
    async with transaction() as db:
        is_there = (await db.get_one(Server, history.server)).bot_invited
        if is_there and history.random.random() >= SELDOM:
            return
        history.say(f"  the bot {'leaves' if is_there else 'returns'}")
        if is_there:
            await gateway_events.left(db, history.discord.id)
        else:
            await gateway_events.guild_available(db, history.discord.guild_facts())


STEPS: tuple[tuple[int, Step], ...] = (
    (1, pause_a_rule),
    (2, resume_a_rule),
    (1, put_a_rule_in_shadow),
    (1, change_the_role_of_a_rule),
    (1, change_what_a_rule_asks_for),
    (1, make_a_rule),
    (1, replace_a_role),
    (1, take_over_or_not),
    (1, change_the_removal_of_a_rule),
    (1, delete_or_restore_a_rule),
    (1, undo_something),
    (1, protect_or_not),
    (3, answer_the_breaker),
    (1, end_a_truce),
    (1, pause_or_resume_a_role),
    (1, delete_or_make_a_role),
    (1, move),
    (1, bot_leaves_or_returns),
)
"""The steps with their weights."""
