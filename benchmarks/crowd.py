"""Response times of a screen's data in a crowd: `python -m benchmarks.crowd [--quick]`.

One admin with 100 servers, one of them with 200,000 members, 1,000 rules and a year's log of 5,000,000 lines. Each
service call that a screen makes is made in turns; the admin's rights, which Discord reports, are assumed.
"""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

from benchmarks.support import crowd_web
from benchmarks.support.community import database, product
from benchmarks.support.crowd_web import Took, database_processes, processor
from benchmarks.support.rounds import options
from gateways import Gateways
from models import Server, now, reading, transaction
from models.db.session import AsyncSession
from services.core.actors import Actor
from services.guilds import permissions
from services.health import alert_conditions, backlog
from services.privacy import export, payouts, preferences
from services.rules import views
from services.runtime import garbage_collection
from services.servers import activity, analytics, breaker_review, explain, member_list, servers
from services.servers import export as server_export
from services.servers.activity import LogFilter
from settings import settings

ADMIN = Actor(1, "800000000000000001", "admin")
BIG = 1
SERVERS, RULES = 100, 1_000
Ask = Callable[[AsyncSession], Awaitable[object]]


@dataclass(frozen=True)
class Size:
    """The number of members and log lines of the big server, and of repetitions of each call."""

    members: int
    lines: int
    times: int


@dataclass
class Call:
    """A call that a screen makes, and the times it took."""

    name: str
    ask: Ask
    took: list[Took] = field(default_factory=list[Took])


# Ids are consecutive numbers, chosen by arithmetic, so that every run has the same crowd.
_BUILD = (
    """
    INSERT INTO server (id, discord_id, name, description, bot_invited, created_at)
    SELECT n, CAST(700000000000000000 + n AS text), 'Server ' || n, '', true, now() FROM generate_series(1, :servers) n
    """,
    """
    INSERT INTO "user" (id, discord_id, username, connected, created_at, updated_at)
    SELECT n, CAST(800000000000000000 + n AS text), 'user' || n, false, now(), now() FROM generate_series(1, :members) n
    """,
    """
    INSERT INTO wallet (user_id, family, address, method, evidence, created_at)
    SELECT n, 'evm', '0x' || lpad(to_hex(n), 40, '0'), 'opensea_bio', '{}', now()
    FROM generate_series(1, :members) n WHERE n % 5 < 3
    """,
    """
    INSERT INTO member_choice (server_id, user_id, use_wallets, share_wallets, payout_wallet_id)
    SELECT 1, user_id, true, false, id FROM wallet
    """,
    """
    INSERT INTO member (server_id, discord_id, name, roles, pending, seen_at)
    SELECT CASE s WHEN 0 THEN 1 ELSE 2 + n % (:servers - 1) END, CAST(800000000000000000 + n AS text),
           'Name ' || md5(CAST(n AS text)), ARRAY['1', '2'], false, now()
    FROM generate_series(1, :members) n, generate_series(0, 1) s WHERE s = 0 OR n % 20 = 0
    """,
    """
    INSERT INTO rule (id, server_id, name, role_id, role_name, role_color, verification_type, contract_address,
                      blockchain, min_tokens, token_ids, expression, removal_mode, removal_hours, state, created_by,
                      created_at, updated_at)
    SELECT n, CASE WHEN n <= :rules THEN 1 ELSE n - :rules + 1 END, 'Rule ' || n, CAST(900000 + n % 250 AS text),
           'Role ' || n % 250, '#5865F2', 'basic', '0x' || lpad(to_hex(n), 40, 'c'), 'base', 1, '{}',
           jsonb_build_object('type', 'basic', 'chain', 'base', 'contract', '0x' || lpad(to_hex(n), 40, 'c'),
                              'minTokens', 1),
           'now', 0, 'active', '1', now(), now()
    FROM generate_series(1, :rules + :servers - 1) n
    """,
    """
    INSERT INTO "grant" (server_id, discord_id, role_id, rule_ids, state, had_before, evidence, attempts, created_at,
                         updated_at)
    SELECT 1, CAST(800000000000000000 + n AS text), CAST(900000 + (n + r * 7) % 250 AS text),
           ARRAY[1 + (n + r * 7 + 249) % 250], 'held', false, '{}', 0, now(), now()
    FROM generate_series(1, :members) n, generate_series(1, 2) r WHERE n % 5 < 3
    """,
    """
    INSERT INTO access (server_id, discord_id, owner, checked_at)
    SELECT n, '800000000000000001', true, now() FROM generate_series(1, :servers) n
    """,
    """
    INSERT INTO due (kind, key, priority, turn, due_at, version, attempts, reason)
    SELECT 'member', '1:' || 800000000000000000 + n, 0, n, now(), 1, n % 2, CASE n % 2 WHEN 1 THEN 'A node is down' END
    FROM generate_series(1, :members, 4) n
    """,
    """
    INSERT INTO breaker (server_id, role_id, tripped_at, would_lose, holders)
    SELECT 1, CAST(900000 + n AS text), now(), 100, 400 FROM generate_series(1, 3) n
    """,
    """
    INSERT INTO event (at, kind, server_id, actor, subject, role_id, rule_id, batch, data)
    SELECT now() - interval '365 days' * (1 - CAST(n AS float) / :lines),
           CASE WHEN n % 5000 = 0 THEN 'rule.changed' WHEN n % 50 = 0 THEN 'wallet.proved'
                WHEN n % 10 < 5 THEN 'role.given' WHEN n % 10 < 9 THEN 'role.taken' ELSE 'role.reasons' END,
           CASE WHEN n % 50 = 0 AND n % 5000 <> 0 THEN NULL ELSE 1 END,
           CASE WHEN n % 5000 = 0 THEN '800000000000000001' END,
           CASE WHEN n % 5000 <> 0 THEN CAST(800000000000000001 + (CAST(n AS bigint) * 7919) % :members AS text) END,
           CASE WHEN n % 50 <> 0 THEN CAST(900000 + n % 250 AS text) END,
           CASE WHEN n % 5000 = 0 THEN 1 + n % 250 END,
           CASE WHEN n % 10 IN (5, 6) THEN CAST(md5(CAST(n / 1000 AS text)) AS uuid) END,
           jsonb_build_object('ruleIds', jsonb_build_array(1 + n % 250), 'roleName', 'Role ' || n % 250)
    FROM generate_series(1, :lines) n
    """,
)


async def build(size: Size) -> None:
    """Fill an empty database with the crowd; the counts are made from it, as after an update of a large product."""
    values = {"servers": SERVERS, "members": size.members, "rules": RULES, "lines": size.lines}
    async with transaction() as db:
        await db.execute("SET LOCAL session_replication_role = 'replica'")  # no triggers, no foreign keys
        for statement in _BUILD:
            named = {name: value for name, value in values.items() if f":{name}" in statement}
            await db.execute(statement, named)
        for table in ("server", "user", "rule"):  # later rows get ids after these
            await db.execute(f"SELECT setval(pg_get_serial_sequence('\"{table}\"', 'id'), max(id)) FROM \"{table}\"")
    async with transaction() as db:
        await db.execute("SELECT rollup_begin()")
    async with reading() as db:
        await db.execute("VACUUM ANALYZE")
    for what, counting in (("lines", "rollup_fill"), ("members", "verified_rebuild")):
        began = time.perf_counter()
        async with transaction() as db:
            await db.execute(f"SELECT {counting}()")
        print(f"{what} counted in {time.perf_counter() - began:.1f} s", file=sys.stderr)
    async with reading() as db:
        await db.execute("VACUUM ANALYZE")


async def built() -> bool:
    """Return whether the database has a crowd from an earlier run."""
    async with reading() as db:
        return (await db.execute("SELECT EXISTS (SELECT 1 FROM event)")).scalar_one()


def calls(size: Size) -> list[Call]:
    """Return every database call of the screens, for the big server."""
    outside = cast(Gateways, None)
    somebody = str(800_000_000_000_000_001 + size.members // 2)
    deep = size.lines // 2

    def log(**wanted: Any) -> Ask:
        return lambda db: activity.read(db, outside, ADMIN, BIG, LogFilter(**wanted))

    def members(query: str = "", page: int = 1) -> Ask:
        return lambda db: member_list.list_members(db, outside, ADMIN, BIG, query, page)

    asked: dict[str, Ask] = {
        "dashboard: figures": lambda db: analytics.totals(db, ADMIN),
        "dashboard: 7 days": lambda db: analytics.history(db, ADMIN, 7),
        "dashboard: 90 days": lambda db: analytics.history(db, ADMIN, 90),
        "dashboard: 90 days of one server": lambda db: analytics.history(db, ADMIN, 90, BIG),
        "dashboard: servers": lambda db: servers.list_servers(db, ADMIN),
        "dashboard: troubles": lambda db: alert_conditions.of_all(db, range(1, SERVERS + 1)),
        "server: one": lambda db: servers.get(db, outside, ADMIN, BIG),
        "server: rules": lambda db: views.of_servers(db, [BIG]),
        "members: first page": members(),
        "members: last page": members(page=size.members // 50),
        "members: by name": members("abc"),
        "members: nobody found": members("no such name"),
        "members: why": lambda db: explain.why(db, outside, ADMIN, BIG, somebody),
        "log: newest": log(),
        "log: in the middle": lambda db: activity.read(db, outside, ADMIN, BIG, LogFilter(), before=deep),
        "log: common kind": log(kind="role.taken"),
        "log: rare kind": log(kind="rule.changed"),
        "log: unknown kind": log(kind="breaker"),
        "log: one role": log(role_id="900007"),
        "log: unknown role": log(role_id="1"),
        "log: one rule": log(rule_id=7),
        "log: rule without lines": log(rule_id=999),
        "log: by an admin": log(actor=ADMIN.discord_id),
        "log: by somebody else": log(actor=somebody),
        "log: about a member": log(member=somebody),
        "log: about a name": log(member="abc"),
        "log: about nobody": log(member="no such name"),
        "log: an old day": log(since=now() - timedelta(days=300), until=now() - timedelta(days=299)),
        "log: what it can be filtered by": lambda db: activity.choices(db, outside, ADMIN, BIG),
        "health: queue": lambda db: backlog.queue(db, BIG, now()),
        "health: unknown": lambda db: backlog.unknown(db, BIG),
        "health: held back": lambda db: breaker_review.of_server(db, outside, ADMIN, BIG),
        "account: servers": lambda db: preferences.choices(db, ADMIN),
        "account: export": whole_export,
        "download: page of members": lambda db: member_list.after(db, BIG, somebody, server_export.PAGE),
        "download: page of payouts": lambda db: payout_page(db, somebody),
    }
    return [Call(name, ask) for name, ask in asked.items()]


async def whole_export(db: AsyncSession) -> int:
    """Read everything about a person, and return how many characters it has."""
    return sum([len(piece) async for piece in export.export(db, ADMIN)])


async def payout_page(db: AsyncSession, after: str) -> str:
    """Read a page of payout addresses and render it, as a download of all of them does repeatedly."""
    return await payouts.body(db, ADMIN, BIG, await payouts.page(db, BIG, after, payouts.ANSWERS_A_PAGE // RULES), None)


async def measure(size: Size) -> list[Call]:
    """Build the crowd and make every call, in turns."""
    if not await built():
        await build(size)

    async def given(db: AsyncSession, _: Gateways, __: Actor, server_id: int) -> Server:
        server = await db.get(Server, server_id)
        assert server is not None
        return server

    asked = calls(size)
    garbage_collection.freeze()  # as the web process does
    processes = [Path("/proc/self"), *await asyncio.to_thread(database_processes, settings().database_url or "")]
    to_read, permissions.require_admin_to_read = permissions.require_admin_to_read, given
    try:
        for _ in range(size.times + 1):
            for call in asked:
                began, busy = time.perf_counter(), processor(processes)
                async with transaction() as db:
                    await call.ask(db)
                call.took.append(Took(1000 * (time.perf_counter() - began), processor(processes) - busy))
    finally:
        permissions.require_admin_to_read = to_read
    for call in asked:
        del call.took[0]  # the first run reads pages into memory for the later ones
    return asked


async def _run(url: str, size: Size) -> list[Call]:
    async with product(url):
        return await measure(size)


def main(arguments: Sequence[str] = ()) -> None:
    """Measure and print."""
    parser = options("crowd", __doc__, quick="20,000 members and 300,000 lines")
    parser.add_argument("--keep", type=Path, help="a directory whose database is used, and made if there is none")
    given = parser.parse_args(arguments)
    size = Size(20_000, 300_000, 5) if given.quick else Size(200_000, 5_000_000, 20)
    with database(given.keep) as url:
        found = asyncio.run(_run(url, size))
        print(f"\n{size.members:,} members and {RULES:,} rules in one server, {size.lines:,} lines, {SERVERS} servers")
        crowd_web.show("a screen's call", {call.name: call.took for call in found})
        crowd_web.measure(url, BIG, size.members, size.times, every_line=not given.quick)


if __name__ == "__main__":
    main(sys.argv[1:])
