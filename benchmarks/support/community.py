"""The database that benchmarks work on: a PostgreSQL of their own with servers, members, wallets, rules and grants."""

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

from sqlalchemy import insert

import models
from app.postgres.server import Postgres
from benchmarks.support.nft_chain import CHAIN, ROOT, wallet
from benchmarks.support.rounds import READY
from gateways import close_gateways
from jobs.__main__ import lives
from models import Rule, Server, reading, transaction
from models.db.session import AsyncSession
from services.core import queue
from services.rules.expression import Requirement, to_document
from services.runtime import garbage_collection
from services.runtime.task_cancellation import stop
from services.triggers import sweep
from settings import settings

GUILD = 700_000_000_000_000_000
PERSON = 800_000_000_000_000_000
ROLE = 900_000_000_000_000_000


@contextmanager
def database(kept: Path | None = None) -> Iterator[str]:
    """A migrated database as a product's start makes it; yields its address. Empty, or kept in the directory `kept`."""
    with (
        nullcontext(kept) if kept else tempfile.TemporaryDirectory(prefix="hf-bench-", dir="/tmp") as directory,
        Postgres(Path(directory) / "db", say=lambda _: None) as postgres,
    ):
        subprocess.run(
            [sys.executable, "-m", "alembic", "upgrade", "head"],
            cwd=ROOT, env=os.environ | {"DATABASE_URL": postgres.url}, check=True, capture_output=True,
        )  # fmt: skip
        yield postgres.url


@asynccontextmanager
async def product(database_url: str, nodes: Sequence[str] = (), **more: str) -> AsyncIterator[None]:
    """This process as one of the product's: its settings name the database and the nodes of the benchmarks' chain."""
    values = {
        "DATABASE_URL": database_url, "PUBLIC_URL": "http://localhost:3999", "SECRET_KEY": 32 * "b",
        "DISCORD_CLIENT_ID": "1", "DISCORD_CLIENT_SECRET": "2", "DISCORD_BOT_TOKEN": "3",
        f"RPC_{CHAIN.upper()}": " ".join(nodes),
    } | more  # fmt: skip
    try:
        with patch.dict(os.environ, values):
            settings.cache_clear()
            await close_gateways()  # a test may have left gateways that lead nowhere
            await models.use(database_url)
            try:
                yield
            finally:
                await close_gateways()
                await models.use(None)
    finally:
        settings.cache_clear()


@asynccontextmanager
async def jobs(*parts: str) -> AsyncIterator[None]:
    """Parts of a jobs process, which run while the block lasts; without its schedule there is no daily sweep."""
    tasks = [asyncio.create_task(life()) for life in lives(parts)]
    try:
        yield
    finally:
        await stop(*tasks)


async def told_to_end() -> None:
    """Say READY as the process of a benchmark, and wait for the line that ends it."""
    garbage_collection.freeze()  # as every process of the product does
    print(READY, end="", flush=True)
    await asyncio.to_thread(sys.stdin.readline)


async def begin_sweep() -> int:
    """Begin a sweep and call the reconcilers; return the number of members."""
    async with transaction() as db:
        members = await sweep.start_sweep(db)
        await db.execute("SELECT pg_notify(:channel, '')", {"channel": queue.CHANNEL})
    return members


async def due() -> int:
    """Return how many members wait to be reconciled."""
    async with transaction() as db:
        return (await db.execute("SELECT count(*) FROM due")).scalar_one()


async def people(count: int, *, servers: int = 1) -> list[int]:
    """Create that many people, each with one wallet of the chain and a member row; return the ids of the servers."""
    async with transaction() as db:
        made = [Server(discord_id=str(GUILD + at), name=f"Server {at}", bot_invited=True) for at in range(servers)]
        db.add_all(made)
        await db.flush()
        ids = [server.id or 0 for server in made]
        connection = await db.connection()
        raw = (await connection.get_raw_connection()).driver_connection
        assert raw is not None
        async with raw.cursor() as cursor:
            await cursor.execute(
                'INSERT INTO "user" (id, discord_id, username, connected, created_at, updated_at) '
                "SELECT n, CAST(%s + n AS text), 'somebody', false, now(), now() FROM generate_series(1, %s) n",
                (PERSON, count),
            )
            columns = "user_id, family, address, method, evidence, created_at"
            async with cursor.copy(f"COPY wallet ({columns}) FROM STDIN") as copy:
                for number in range(count):
                    await copy.write_row((number + 1, "evm", wallet(number), "opensea_bio", "{}", models.now()))
            await cursor.execute(
                "INSERT INTO member (server_id, discord_id, name, roles, pending, seen_at) "
                "SELECT (CAST(%s AS integer[]))[1 + n %% %s], CAST(%s + n AS text), 'somebody', '{}', false, now() "
                "FROM generate_series(1, %s) n",
                (ids, servers, PERSON, count),
            )
    await _analyse()
    return ids


async def rules(server_id: int, contracts: Sequence[str], *, first: int = 0) -> list[str]:
    """Create a rule for each contract, each with a role of its own, numbered from `first`; return the roles."""
    roles = [str(ROLE + first + at) for at in range(len(contracts))]
    async with transaction() as db:
        await add_rules(db, [rule_row(server_id, *pair) for pair in zip(contracts, roles, strict=True)])
    return roles


def rule_row(server_id: int, contract: str, role: str, expression: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return one rule as `add_rules` takes it: at least one token of the contract, or the expression."""
    tree = expression or to_document(Requirement("basic", CHAIN, contract))
    return {
        "server_id": server_id, "name": "A rule", "role_id": role, "role_name": "Role", "role_color": "#5865F2",
        "verification_type": "basic", "contract_address": contract, "blockchain": CHAIN, "min_tokens": 1,
        "token_ids": [], "removal_mode": "now", "removal_hours": 0, "state": "active", "created_by": "0",
        "created_at": models.now(), "updated_at": models.now(), "expression": tree,
    }  # fmt: skip


async def add_rules(db: AsyncSession, rows: Sequence[dict[str, Any]]) -> None:
    """Insert many rules in a few statements."""
    for first in range(0, len(rows), 5_000):
        await db.execute(insert(Rule), list(rows[first : first + 5_000]))


async def written() -> None:
    """Mark every role change in the ledger as carried out, as if Discord had done it all."""
    async with transaction() as db:
        await db.execute("UPDATE \"grant\" SET state = 'held', next_at = NULL WHERE state = 'giving'")
        await db.execute(
            "UPDATE member m SET roles = g.roles FROM (SELECT server_id, discord_id, array_agg(role_id) AS roles "
            'FROM "grant" GROUP BY 1, 2) g WHERE g.server_id = m.server_id AND g.discord_id = m.discord_id'
        )
    await _analyse()


async def _analyse() -> None:
    async with reading() as db:
        await db.execute("VACUUM ANALYZE")
