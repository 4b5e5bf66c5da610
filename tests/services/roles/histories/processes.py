"""The steps of the product's processes: reconciles and role changes, some held up in the middle, crashes and time."""

import asyncio
from collections.abc import Collection
from contextlib import suppress

from sqlalchemy import text

from models import Server, reading, transaction
from services.core import queue
from services.engine import reconcile
from services.roles.outbox import Intent
from tests.services.roles.histories import admins, members
from tests.services.roles.histories.discord import NAMES, Reply
from tests.services.roles.histories.history import HOLD, LISTS, READ_AT, History, Hold, Step
from tests.support.builders import open_intents

EVERYBODY = 50
"""More members than a history has."""
JUMPS = (100, 100, 100, 500, 4_000, 90_000)
"""Seconds that pass at once: beyond a late answer, a longer pause, a grace time, and what counts for a day."""


async def _reconcile(history: History, limit: int, hold: Hold | None = None) -> bool:
    """Reconcile some of the queued members; return whether there were any."""
    READ_AT.set(history.step)
    HOLD.set(hold)
    worker = f"worker {history.step}"
    async with reading() as db:
        claims = await queue.claim(db, worker, limit)
    if claims:
        await reconcile.reconcile_claims(history.outside, worker, claims)
    return bool(claims)


async def reconcile_some(history: History) -> None:
    """Reconcile queued members; sometimes stop between the decisions and the writing."""
    await history.short_pauses_end()
    limit, holds = history.random.choice((1, 2, EVERYBODY)), history.random.random() < 0.3
    if not holds:
        await _reconcile(history, limit)
        return
    hold = Hold()
    task = asyncio.create_task(_held_up(history, limit, hold))
    if await _reaches(task, hold.reached):
        history.say("  the reconcile is held up")
        history.reconciles.append((task, hold))


async def _held_up(history: History, limit: int, hold: Hold) -> None:
    await _reconcile(history, limit, hold)


async def _reaches(task: asyncio.Task[None], event: asyncio.Event) -> bool:
    """Wait until the event is set or the task ends; return whether the task goes on. Raises what the task raised."""
    reached = asyncio.create_task(event.wait())
    await asyncio.wait({task, reached}, return_when=asyncio.FIRST_COMPLETED)
    reached.cancel()
    if task.done():
        task.result()
    return not task.done()


async def send_some(history: History) -> None:
    """Let the role writer send changes; Discord answers each in its own way, or holds it."""
    await history.short_pauses_end()
    most = history.random.choice((1, 4))
    async with transaction() as db:
        own = [intent for task, intent in history.writes.items() if task not in history.former_writes]
        intents = await open_intents(db, 4, own)
    for intent in intents[:most]:
        holds = history.random.choice(("", "", "", "change", "reading"))
        reply = history.random.choice((*[Reply.DONE] * 6, *list(Reply)[1:]))
        await _send(history, intent, reply, holds)


async def _send(history: History, intent: Intent, reply: Reply, holds: str = "") -> None:
    discord = history.discord
    verb = "give" if intent.giving else "take"
    waits = f"{holds} held" if holds else reply.value
    history.say(f"  {verb} {NAMES[intent.role_id]}, {history.name(intent.discord_id)}: {waits}")
    discord.reply = Reply.DONE if holds else reply
    discord.holds, discord.holds_readings = holds == "change", holds == "reading"
    discord.arrived.clear()
    task = asyncio.create_task(history.writer._carry_out(intent, history.lease_since))
    if await _reaches(task, discord.arrived):
        history.writes[task] = intent.id
    discord.holds = discord.holds_readings = False
    discord.reply = Reply.DONE


async def let_go_on(history: History) -> None:
    """Let a reconcile that is held up write, or Discord answer a change that it holds."""
    if history.reconciles and history.random.random() < 0.6:
        await _release_reconcile(history)
    elif history.discord.held:
        place = history.random.randrange(len(history.discord.held))
        replies = (*[Reply.DONE] * 3, Reply.UNANSWERED, Reply.LOST, Reply.LATE, Reply.REFUSED)
        await _answer(history, place, history.random.choice(replies))


async def _release_reconcile(history: History) -> None:
    task, hold = history.reconciles.pop(0)
    history.say("  a reconcile goes on")
    hold.opened.set()
    await task


async def _answer(history: History, place: int, reply: Reply) -> None:
    request = history.discord.held.pop(place)
    if not request.role:
        reply = Reply.BLIND if reply is Reply.LOST else Reply.DONE
        history.say(f"  {history.name(request.who)} is read for the role writer: {reply.value}")
    else:
        verb = "give" if request.give else "take"
        history.say(f"  {verb} {NAMES[request.role]}, {history.name(request.who)}: {reply.value}")
    request.reply.set_result(reply)
    if request.task is not None:
        await request.task
        history.writes.pop(request.task)


async def late_requests_arrive(history: History) -> None:
    """Let Discord carry out changes that it had not answered, or not."""
    late, history.discord.late = history.discord.late, []
    for who, role, give in late:
        if history.random.random() < 0.5:
            history.discord.apply(who, role, give=give)


async def crash(history: History) -> None:
    """End all processes; Discord carries out what it holds, or not."""
    history.say(f"  {len(history.writes)} changes and {len(history.reconciles)} reconciles end in the middle")
    await _end([*history.writes, *(task for task, _ in history.reconciles)])
    held, history.discord.held = history.discord.held, []
    for request in held:
        if request.role and history.random.random() < 0.5:
            history.discord.apply(request.who, request.role, give=request.give)
    history.writes, history.reconciles = {}, []
    await history.restart()


async def another_process_takes_over(history: History) -> None:
    """Let another process write roles; the former one, which stood still, goes on with the changes that it had begun.

    It sends no change that it has not read within a minute, so it cannot have stood still for long.
    """
    if not history.writes:
        return
    history.say(f"  another process writes, {len(history.writes)} changes of the former one go on")
    history.former_writes |= history.writes.keys()
    await history.restart()


async def _end(tasks: Collection[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def time_passes(history: History) -> None:
    if not history.writes:
        await history.pass_time(history.random.choice(JUMPS))


async def the_clock_is_set_back(history: History) -> None:
    if not history.is_held_up:
        await history.set_clock_back(history.random.choice((30, 4_000)))


async def sweep(history: History) -> None:
    """Queue everybody, and try again everything that waits."""
    async with transaction() as db:
        await queue.mark_swept(db, [history.server])
        await db.execute(text("UPDATE \"grant\" SET next_at = now() WHERE state IN ('giving', 'taking')"))


async def a_list_is_unreadable_or_not(history: History) -> None:
    """Make a list unreadable, so that its answer is unknown, or readable again."""
    digest = history.random.choice(LISTS)
    if digest in history.unreadable or history.random.random() < admins.SELDOM:
        await _set_readable(history, digest, readable=digest in history.unreadable)


async def _set_readable(history: History, digest: str, *, readable: bool) -> None:
    history.say(f"  list {LISTS.index(digest) + 1} can be read: {readable}")
    (history.unreadable.discard if readable else history.unreadable.add)(digest)
    async with transaction() as db:
        await db.execute(
            text("UPDATE address_list SET digest = :name WHERE id = :id"),
            {"name": digest if readable else f"away {digest[:1]}", "id": history.list_ids[digest]},
        )


async def settle(history: History) -> None:
    """End all trouble: everything held goes on, every list and member can be read, and the bot is there."""
    history.say("the trouble ends")
    while history.reconciles:
        await _release_reconcile(history)
    while history.discord.held:
        await _answer(history, 0, Reply.DONE)
    for digest in sorted(history.unreadable):
        await _set_readable(history, digest, readable=True)
    async with transaction() as db:
        is_there = (await db.get_one(Server, history.server)).bot_invited
    if not is_there:
        await admins.bot_leaves_or_returns(history)  # it returns
    history.discord.late.clear()
    for role in sorted(history.discord.deleted):
        await admins.make_again(history, role)
    while history.late_events:
        await members.late_event_arrives(history)
    for who in sorted(history.discord.pending):
        await members.end_screening(history, who, heard=False)
    for who in history.people:
        await members.read(history, who)


async def work(history: History, seconds: int) -> None:
    """Let so many seconds pass, sweep, and let the product decide and write until nothing is left to do."""
    await history.pass_time(seconds)
    await sweep(history)
    for _ in range(4):
        while await _reconcile(history, EVERYBODY):
            pass
        async with transaction() as db:
            intents = await open_intents(db, 16, ())
        if not intents:
            return
        for intent in intents:
            await _send(history, intent, Reply.DONE)


async def stop(history: History) -> None:
    """End what a history that failed has left behind."""
    await _end([*history.writes, *(task for task, _ in history.reconciles)])


STEPS: tuple[tuple[int, Step], ...] = (
    (12, reconcile_some),
    (12, send_some),
    (5, let_go_on),
    (1, late_requests_arrive),
    (1, crash),
    (2, another_process_takes_over),
    (2, time_passes),
    (1, the_clock_is_set_back),
    (1, sweep),
    (1, a_list_is_unreadable_or_not),
)
"""The steps with their weights."""
