"""A backup taken under load, restored into a fresh copy in another folder, brings everything back."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
from sqlmodel import select

import models
from app.postgres.server import Postgres
from app.supervisor.single_instance import MARK, running
from models import Grant, Rule, Wallet, transaction
from setting_checks import libpq_url
from settings import CALLBACK_PATH
from tests.bot.conftest import Club
from tests.bot.conftest import club as club
from tests.conftest import ROOT, free_port, wait_for
from tests.support.builders import a_grant, a_member, a_rule, a_server, address
from tests.support.product import Product
from tests.system.whole.people import Person, until

# A clone has only what is under version control, and here the compiled modules, which a dozen processes
# would otherwise compile again; nothing of this folder's data, settings and other caches.
NOT_CLONED = shutil.ignore_patterns(".git", ".env", ".venv", ".web", ".states", ".*_cache", "node_modules", "data")
OF_A_FOLDER = {"DATA_DIR", "DATABASE_URL", "PUBLIC_URL", "REDIS_URL", "PORT", "SANDBOX_PORT"}
START = (
    "import os; from app.supervisor.web import command; "
    "argv, more = command(); os.execve(argv[0], argv, os.environ | more)"
)
TORN = """
    SELECT s.id FROM server s WHERE s.name = 'A server' AND 1 <> (
        SELECT count(*) FROM rule r JOIN "grant" g ON g.server_id = r.server_id AND g.rule_ids = ARRAY[r.id]
        JOIN member m ON m.server_id = g.server_id AND m.discord_id = g.discord_id
        JOIN "user" u ON u.discord_id = m.discord_id JOIN wallet w ON w.user_id = u.id WHERE r.server_id = s.id)
"""
PAUSE_SECONDS = 0.02
"""A writer's pause: the tables are read within less than a second, and dozens of transactions still end meanwhile."""
Rows = dict[str, dict[int, dict[str, Any]]]


async def work() -> None:
    """Prove a member's wallet and give them a role by a rule, in one transaction: a backup has all of it or nothing.

    The bot is not in that server, so nothing else happens there.
    """
    async with transaction() as db:
        server = await a_server(db, bot_invited=False)
        rule = await a_rule(db, server, "7")
        await a_grant(db, await a_member(db, server, wallet=address()), rule)


async def rows() -> Rows:
    """Return every rule, wallet and grant as a whole row, by its id."""
    async with transaction() as db:
        return {
            table.__name__: {row.id or 0: row.model_dump() for row in (await db.exec(select(table))).all()}
            for table in (Rule, Wallet, Grant)
        }


async def said(*arguments: str, folder: Path, more: dict[str, str]) -> str:
    """Return the output of `python -m …` in a folder; it must succeed."""
    environment = {name: value for name, value in os.environ.items() if name not in OF_A_FOLDER} | more
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", *arguments, cwd=folder, env=environment,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    told = (await process.communicate())[0].decode()
    assert process.returncode == 0, told
    return told


async def backup_under_load(product: Product, file: Path) -> tuple[Rows, Rows]:
    """Run `make backup FILE=…` while three writers work; return the rows before and after."""
    for _ in range(5):
        await work()
    before, going = await rows(), True

    async def write() -> int:
        done = 0
        while going:
            await work()
            done += 1
            # Without a pause they would keep a processor busy that the backup itself needs.
            await asyncio.sleep(PAUSE_SECONDS)
        return done

    writers = [asyncio.create_task(write()) for _ in range(3)]
    told = await said("app.backup", "make", "--to", str(file), folder=ROOT, more={"DATA_DIR": str(product.data_dir)})
    going = False
    assert sum(await asyncio.gather(*writers)) > 3, "they did write meanwhile"
    assert f"make restore FILE={file}" in told
    return before, await rows()


@contextmanager
def web_of(folder: Path, database: str, sandbox: str) -> Iterator[Product]:
    """The web process of a copy, on its restored database; it uses the screens that are built here."""
    port = free_port()
    (folder / ".web").symlink_to(ROOT / ".web")
    environment = {name: value for name, value in os.environ.items() if name not in OF_A_FOLDER} | {
        "PORT": str(port), "SANDBOX_PORT": str(urlsplit(sandbox).port), "DATABASE_URL": database,
        "HOLDFAST_SUPERVISED": "1", "PYTHONWARNINGS": "ignore", MARK: str(folder),
    }  # fmt: skip
    log = folder / "web.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", START], cwd=folder, env=environment, stdout=output, stderr=output
        )
    try:
        wait_for(f"http://localhost:{port}/api/openapi.json", process, log)
        yield Product(f"http://localhost:{port}", sandbox, folder / "data")
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def shown(product: Product, club: Club) -> dict[str, Any]:
    """Return the rules, wallets and roles on the screens of an admin and a member."""
    admin, member = (Person(product, club.people[who]["username"]) for who in ("ada", "carol"))
    try:
        server_id = admin.server(club.name)["internalId"]
        listed = admin.get(f"/api/servers/{server_id}/members", query=club.people["carol"]["id"])
        return {
            "rules": admin.get("/api/verification-rules", serverId=server_id),
            "wallets": member.get("/api/wallet-verifications"),
            "roles": [one["roles"] for one in listed["members"]],
        }
    finally:
        admin.close()
        member.close()


async def test_a_fresh_copy_in_another_folder_has_every_rule_wallet_and_grant(club: Club, short_dir: Path) -> None:
    club.make_rule()
    club.buys("carol")
    club.prove("carol")
    until(lambda: club.has("carol", "Holder"))
    until(lambda: club.logged("role.given"))
    here = await asyncio.to_thread(shown, club.product, club)
    assert [(role["held"], role["grantedByUs"]) for role in here["roles"][0]] == [(True, True)]
    now = running(club.product.data_dir)
    assert now is not None
    file, fresh = short_dir / "a.dump", short_dir / "elsewhere"
    try:
        await models.use(now.database_url)
        before, after = await backup_under_load(club.product, file)
        await models.use(None)
        shutil.copytree(ROOT, fresh, ignore=NOT_CLONED)
        assert "Restored" in await said("app.backup", "restore", str(file), folder=fresh, more={})
        with Postgres(fresh / "data" / "sandbox" / "db", durable=False, say=lambda _: None) as postgres:
            await models.use(postgres.url)
            restored = await rows()
            await models.use(None)
            for table, found in restored.items():
                assert before[table].keys() & after[table].keys() <= found.keys(), "all that was there"
                kept = {number: row for number, row in before[table].items() if after[table].get(number) == row}
                assert kept, table
                assert {number: found.get(number) for number in kept} == kept, "and as it was"
                assert found.keys() <= before[table].keys() | after[table].keys(), "nothing that never was"
            with psycopg.connect(libpq_url(postgres.url)) as reader:
                assert reader.execute(TORN.encode()).fetchall() == [], "each transaction whole or not at all"
            with web_of(fresh, postgres.url, club.product.sandbox) as copy:
                # As an operator does at Discord: sign-ins return only to registered addresses.
                callbacks = [one.url + CALLBACK_PATH for one in (club.product, copy)]
                club.product.control("application", {"redirect_uris": callbacks})
                assert await asyncio.to_thread(shown, copy, club) == here
    finally:
        await models.use(None)
