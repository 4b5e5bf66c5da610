"""The steps of members and of those who move roles beside us: holdings, wallets, privacy, coming and going."""

from datetime import UTC, datetime
from decimal import Decimal

from sqlalchemy import text
from sqlmodel import select

from models import Challenge, User, Wallet, now, transaction
from models.db.session import AsyncSession
from services.core import queue
from services.guilds.gateway import known_people
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
WHOLE = 0.7
"""The share of lists of members that leave nobody out."""
SCREENED = 0.4
"""The share of members who are screened when they join."""


async def hold_or_sell(history: History) -> None:
    """Put a wallet on a list or take it off; a block or a setting reports that, or nothing does."""
    reported = history.random.choice((*("by a block", "by a setting") * 2, "by nothing"))
    await _hold_or_sell(history, history.random.choice(LISTS), history.random.choice(history.wallets), reported)


async def begin(history: History) -> None:
    """Let members hold some of what the rules ask for."""
    for digest in LISTS:
        for wallet in history.wallets[: len(history.people)]:
            if history.random.random() < 0.6:
                await _hold_or_sell(history, digest, wallet, "by a setting")


async def _hold_or_sell(history: History, digest: str, wallet: str, reported: str) -> None:
    fact = history.truth.listed[digest, wallet]
    fact.set(not fact.value, history.step, reported=reported != "by nothing")
    name = f"wallet {history.wallets.index(wallet)}"
    history.say(f"  {name} on list {LISTS.index(digest) + 1}: {fact.value}, reported {reported}")
    values = {"list": history.list_ids[digest], "address": wallet}
    async with transaction() as db:
        if reported == "by a block":
            queue.mark_holders(db, "base", [wallet], queue.SEEN)
        elif reported == "by a setting":
            owners = [who for who in history.people if wallet in history.truth.wallets_of(who)]
            for who in sorted(owners):
                await queue.mark_member(db, history.server, who, queue.CHANGED)
        await db.execute(
            text(
                "INSERT INTO address_list_entry (list_id, address) VALUES (:list, :address) ON CONFLICT DO NOTHING"
                if fact.value
                else "DELETE FROM address_list_entry WHERE list_id = :list AND address = :address"
            ),
            values,
        )


async def remove_a_wallet(history: History) -> None:
    who = history.anybody()
    async with transaction() as db:
        actor = await history.account(db, who)
    if actor is None or not (mine := history.truth.wallets_of(who)):
        return
    wallet = history.random.choice(mine)
    async with transaction() as db:
        number = (await db.exec(select(Wallet.id).where(Wallet.address == wallet))).one() or 0
    said = f"{history.name(who)} removes wallet {history.wallets.index(wallet)}"
    await history.change(said, lambda db: wallets.remove(db, actor, number))
    history.truth.gives(wallet, None, history.step)


async def prove_a_wallet(history: History) -> None:
    """Let a member prove a wallet. If it is another's, it moves to them, with what it holds."""
    await prove(history, history.anybody(), history.random.choice(history.wallets))


async def prove(history: History, who: str, wallet: str) -> None:
    said = f"{history.name(who)} proves wallet {history.wallets.index(wallet)}"
    await history.change(said, lambda db: _prove(db, history, who, wallet))
    history.truth.gives(wallet, who, history.step)


async def _prove(db: AsyncSession, history: History, who: str, wallet: str) -> None:
    if await history.account(db, who) is None:
        db.add(User(discord_id=who, username=who))
        await db.flush()
    actor = await history.account(db, who)
    assert actor is not None
    asked = Challenge(
        user_id=actor.user_id, family="evm", address=wallet, code=f"code {history.step} of {who}",
        amount_wei=Decimal(1), created_at=now(), expires_at=now(), seen={},
    )  # fmt: skip
    db.add(asked)
    await db.flush()
    await ownership.keep(db, actor, asked, WalletProof("transaction", {}, strong=True))


async def two_members_swap_wallets(history: History) -> None:
    """Let each of two members prove a wallet of the other's."""
    one, other = history.random.sample(history.people, 2)
    mine, theirs = history.truth.wallets_of(one), history.truth.wallets_of(other)
    if mine and theirs:
        first, second = history.random.choice(mine), history.random.choice(theirs)
        await prove(history, one, second)
        await prove(history, other, first)


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
        for wallet in history.truth.wallets_of(who):
            history.truth.gives(wallet, None, history.step)
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
    # No event about an earlier membership comes after this one's.
    history.late_events = [one for one in history.late_events if one.discord_id != who]
    if leaves:
        del discord.roles_of[who]
        discord.given = {one for one in discord.given if one[0] != who}
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


async def read_the_list(history: History) -> None:
    """Read the list of the server's members; Discord may leave somebody out."""
    discord, missing = history.discord, history.anybody()
    whole = history.random.random() < WHOLE
    history.say(f"  the members are listed{'' if whole else f', without {history.name(missing)}'}")
    page = [discord.facts(who) for who in discord.roles_of if whole or who != missing]
    async with transaction() as db:
        began = await gateway_events.list_begins(db, discord.id)
        await gateway_events.listed(db, discord.id, page)
    for _ in range(2):
        async with transaction() as db:
            await gateway_events.list_ended(db, discord.id, began)


async def an_event_is_late(history: History) -> None:
    """Let an event about a member arrive that Discord wrote earlier, or keep one back."""
    if history.late_events and history.random.random() < 0.5:
        await late_event_arrives(history)
    elif (who := history.anybody()) in history.discord.roles_of:
        history.say(f"  an event about {history.name(who)} is late")
        history.late_events.append(history.discord.facts(who))


async def late_event_arrives(history: History) -> None:
    facts = history.late_events.pop(0)
    if facts.discord_id in history.discord.roles_of:
        history.say(f"  an event about {history.name(facts.discord_id)} arrives late")
        async with transaction() as db:
            await gateway_events.member_changed(db, history.discord.id, facts)


async def forget_strangers(history: History) -> None:
    """Delete the rows of members for whom there is no reason."""
    async with transaction() as db:
        _, gone = await known_people.forget_strangers(db, history.server - 1)
    history.say(f"  {gone} strangers are forgotten")


STEPS: tuple[tuple[int, Step], ...] = (
    (12, hold_or_sell),
    (1, remove_a_wallet),
    (2, prove_a_wallet),
    (1, two_members_swap_wallets),
    (1, use_wallets_or_not),
    (1, forget_a_member),
    (1, finish_forgetting),
    (1, join_or_leave),
    (1, pass_the_screening),
    (2, rival_moves_a_role),
    (1, read_a_member),
    (1, read_the_list),
    (1, an_event_is_late),
    (1, forget_strangers),
)
"""The steps with their weights."""
