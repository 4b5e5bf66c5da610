"""The steps of members and of those who move roles beside us: holdings, wallets, privacy, coming and going."""

from datetime import UTC, datetime
from decimal import Decimal

from sqlalchemy import text

from models import Challenge, User, now, transaction
from models.db.session import AsyncSession
from services.core import queue
from services.privacy import erasure, preferences
from services.triggers import gateway_events
from services.wallets import ownership, wallets
from services.wallets.ownership import WalletProof
from tests.services.roles.histories.discord import NAMES, ROLES
from tests.services.roles.histories.history import LISTS, History, Step

APART = 10
"""Seconds between a membership and what happened before and after it: Discord dates it by the second."""
HEARD = 0.6
"""The share of Discord's events that reach us."""
SCREENED = 0.4
"""The share of members who are screened when they join."""


async def hold_or_sell(history: History) -> None:
    """Put a member's wallet on a list or take it off; a block or a setting reports that, or nothing does."""
    reported = history.random.choice((*("by a block", "by a setting") * 2, "by nothing"))
    await _hold_or_sell(history, history.random.choice(LISTS), history.anybody(), reported)


async def begin(history: History) -> None:
    """Let members hold some of what the rules ask for."""
    for digest in LISTS:
        for who in history.people:
            if history.random.random() < 0.6:
                await _hold_or_sell(history, digest, who, "by a setting")


async def _hold_or_sell(history: History, digest: str, who: str, reported: str) -> None:
    fact = history.truth.listed[digest, who]
    fact.set(not fact.value, history.step, reported=reported != "by nothing")
    history.say(f"  {history.name(who)} on list {LISTS.index(digest) + 1}: {fact.value}, reported {reported}")
    values = {"list": history.list_ids[digest], "address": history.wallets[who]}
    async with transaction() as db:
        if reported == "by a block":
            queue.mark_holders(db, "base", [history.wallets[who]], queue.SEEN)
        elif reported == "by a setting":
            await queue.mark_member(db, history.server, who, queue.CHANGED)
        await db.execute(
            text(
                "INSERT INTO address_list_entry (list_id, address) VALUES (:list, :address) ON CONFLICT DO NOTHING"
                if fact.value
                else "DELETE FROM address_list_entry WHERE list_id = :list AND address = :address"
            ),
            values,
        )


async def remove_or_prove_a_wallet(history: History) -> None:
    """Remove the member's wallet, or prove it (again)."""
    who = history.anybody()
    async with transaction() as db:
        actor, wallet = await history.account(db, who), await history.wallet(db, who)
    if actor is not None and wallet is not None:
        await history.change(f"{history.name(who)} removes the wallet", lambda db: wallets.remove(db, actor, wallet))
    else:
        await history.change(f"{history.name(who)} proves the wallet", lambda db: _prove(db, history, who))
    history.truth.bare[who].set(wallet is not None, history.step)


async def _prove(db: AsyncSession, history: History, who: str) -> None:
    if await history.account(db, who) is None:
        db.add(User(discord_id=who, username=who))
        await db.flush()
    actor = await history.account(db, who)
    assert actor is not None
    asked = Challenge(
        user_id=actor.user_id, family="evm", address=history.wallets[who], code=f"code {history.step} of {who}",
        amount_wei=Decimal(1), created_at=now(), expires_at=now(), seen={},
    )  # fmt: skip
    db.add(asked)
    await db.flush()
    await ownership.keep(db, actor, asked, WalletProof("transaction", {}, strong=True))


async def two_members_swap_wallets(history: History) -> None:
    """Let each of two members prove the other's wallet: it moves to them, with what it holds."""
    one, other = history.random.sample(history.people, 2)
    history.wallets[one], history.wallets[other] = history.wallets[other], history.wallets[one]
    for who in (one, other):
        await history.change(
            f"{history.name(who)} proves another's wallet", lambda db, who=who: _prove(db, history, who)
        )
        history.truth.bare[who].set(False, history.step)
    for digest in LISTS:
        mine, theirs = history.truth.listed[digest, one], history.truth.listed[digest, other]
        before = mine.value, theirs.value
        for fact, value in ((mine, before[1]), (theirs, before[0])):
            if fact.value != value:
                fact.set(value, history.step)


async def use_wallets_or_not(history: History) -> None:
    """Let the member choose whether their wallets count in the server."""
    who = history.anybody()
    async with transaction() as db:
        actor = await history.account(db, who)
    if actor is None:
        return
    hidden = history.truth.hidden[who]
    said = f"{history.name(who)} uses wallets here: {hidden.value}"
    if await history.change(said, lambda db: preferences.choose(db, actor, history.server, use_wallets=hidden.value)):
        hidden.set(not hidden.value, history.step)


async def forget_a_member(history: History) -> None:
    """Delete all that is stored about a member who asks for it; their choice is deleted too."""
    who = history.anybody()
    async with transaction() as db:
        actor = await history.account(db, who)
    if actor is not None and await history.change(
        f"{history.name(who)} is forgotten", lambda db: erasure.forget(db, actor)
    ):
        history.truth.bare[who].set(True, history.step)
        history.truth.hidden[who].set(False, history.step)


async def finish_forgetting(history: History) -> None:
    async with transaction() as db:
        history.say(f"  {await erasure.finish(db)} farewells end")


async def join_or_leave(history: History) -> None:
    """Let a member leave, or come back; a missed event reports neither.

    Nobody comes back while something is held up, because time has to pass then.
    """
    who, heard = history.anybody(), history.random.random() < HEARD
    discord = history.discord
    leaves = who in discord.roles_of
    if not leaves and history.is_held_up:
        return
    history.say(f"  {history.name(who)} {'leaves' if leaves else 'joins'}, heard: {heard}")
    if leaves:
        del discord.roles_of[who]
        discord.pending.discard(who)
    else:
        await history.pass_time(APART)
        discord.roles_of[who], discord.joined[who] = set(), datetime.now(UTC)
        if history.random.random() < SCREENED:
            discord.pending.add(who)
    async with transaction() as db:
        if heard and leaves:
            await gateway_events.member_left(db, discord.id, who)
        elif heard:
            await gateway_events.member_joined(db, discord.id, discord.facts(who))
    if not leaves:
        await history.pass_time(APART)


async def pass_the_screening(history: History) -> None:
    """Let a member who is being screened pass."""
    if history.discord.pending:
        who = min(history.discord.pending)
        await end_screening(history, who, heard=history.random.random() < HEARD)


async def end_screening(history: History, who: str, *, heard: bool) -> None:
    history.say(f"  {history.name(who)} passes the screening, heard: {heard}")
    history.discord.pending.discard(who)
    if heard:
        async with transaction() as db:
            await gateway_events.member_changed(db, history.discord.id, history.discord.facts(who))


async def rival_moves_a_role(history: History) -> None:
    """Let another bot take a role from a member who has it, or give it to one who has not."""
    who, role, heard = history.anybody(), history.random.choice(ROLES), history.random.random() < HEARD
    discord = history.discord
    if who not in discord.roles_of:
        return
    takes = role in discord.roles_of[who]
    history.say(f"  somebody else moves {NAMES[role]} of {history.name(who)}, heard: {heard}")
    discord.apply(who, role, give=not takes)
    history.moved_by_others.add((who, role))
    if heard:
        async with transaction() as db:
            await gateway_events.member_changed(db, discord.id, discord.facts(who))


async def read_a_member(history: History) -> None:
    """Read a member from Discord, as after a missed event."""
    await read(history, history.anybody())


async def read(history: History, who: str) -> None:
    """Report the member's present state as an event."""
    history.say(f"  {history.name(who)} is read")
    async with transaction() as db:
        if who in history.discord.roles_of:
            await gateway_events.member_read(db, history.discord.id, history.discord.facts(who))
        else:
            await gateway_events.member_left(db, history.discord.id, who)


STEPS: tuple[tuple[int, Step], ...] = (
    (12, hold_or_sell),
    (1, remove_or_prove_a_wallet),
    (1, two_members_swap_wallets),
    (1, use_wallets_or_not),
    (1, forget_a_member),
    (1, finish_forgetting),
    (1, join_or_leave),
    (1, pass_the_screening),
    (1, rival_moves_a_role),
    (1, read_a_member),
)
"""The steps with their weights."""
