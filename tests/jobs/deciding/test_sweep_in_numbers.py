"""The cost of a sweep in numbers that do not depend on the machine: statements, requests, bytes and rows."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
from sqlalchemy import text

from benchmarks.support import community
from benchmarks.support.nft_chain import wallet
from gateways.chains.catalogue import CHAINS
from jobs import reconciler
from jobs.reconciler import Reconciler
from locales.stored_texts import said
from models import transaction
from services.triggers import sweep
from tests.gateways.evm_lab import COLLECTION, HOSTILE, Front, address, anvil, deploy, front
from tests.support.statements import Statements

MEMBERS = reconciler.BATCH // 2
CONTRACTS = [address(n) for n in range(10)]
HOLDERS = [wallet(n) for n in range(0, MEMBERS, 40)]


@pytest.fixture(scope="module")
def node() -> Iterator[str]:
    """A node with ten collections, in which every fortieth wallet holds one token."""

    async def build(url: str) -> None:
        for contract in CONTRACTS:
            await deploy(url, contract, COLLECTION, {int(holder, 16): 1 for holder in HOLDERS})

    with anvil("--gas-limit", "50000000", "--block-time", "5") as url:
        asyncio.run(build(url))
        yield url


@pytest.fixture
async def end(node: str, database_url: str) -> AsyncIterator[Front]:
    async with front(node) as one, community.product(database_url, [one.url]):
        yield one


async def look_at_all() -> int:
    """Run a sweep until nobody is due, and return how many statements its reconciles took."""
    async with transaction() as db:
        assert await sweep.start_sweep(db) == MEMBERS
    worker = Reconciler(asyncio.Event())
    with Statements() as statements:
        while await worker.once():
            pass
    return statements.count


async def rows(table: str) -> int:
    async with transaction() as db:
        return int((await db.execute(text(f'SELECT count(*) FROM "{table}"'))).scalar_one())


async def test_a_sweep_in_which_nothing_changed(end: Front) -> None:
    (server,) = await community.people(MEMBERS)
    await community.rules(server, CONTRACTS)
    await look_at_all()
    assert await rows("grant") == len(HOLDERS) * len(CONTRACTS), "each difference is one line of the ledger"
    assert await rows("observation") == len(HOLDERS) * len(CONTRACTS), "who holds nothing has no row"
    await community.written()
    end.requests = end.bytes = 0
    looks = await look_at_all()
    assert looks <= 60 * reconciler.BATCH / 10_000, "at most 60 statements per 10,000 members"
    checks = MEMBERS * len(CONTRACTS)
    assert end.requests <= 0.2 * checks / 1_000, "the head, and two calls or three"
    assert end.bytes <= 10 * checks
    async with transaction() as db:
        changed = await db.execute(text("SELECT count(*) FROM \"grant\" WHERE state <> 'held'"))
        assert changed.scalar_one() == 0
    assert await rows("due") == 0


async def test_a_hostile_collection_spoils_only_its_own_answers(end: Front, node: str) -> None:
    bad = address(500)
    await deploy(node, bad, HOSTILE["burns all its gas"])
    (server,) = await community.people(MEMBERS)
    good = await community.rules(server, CONTRACTS[:3])
    (other,) = await community.rules(server, [bad], first=3)
    async with transaction() as db:
        await sweep.start_sweep(db)
    await Reconciler(asyncio.Event()).once()
    async with transaction() as db:
        given = (await db.execute(text('SELECT role_id, count(*) FROM "grant" GROUP BY 1'))).all()
        doubtful = await db.execute(text("SELECT count(*), min(reason) FROM due WHERE attempts = 1"))
        count, reason = doubtful.one()
    assert dict(given) == dict.fromkeys(good, len(HOLDERS)), f"and nothing for {other}"
    assert count == MEMBERS, "everybody comes up again for the rule that nobody could answer"
    assert said(reason) == f"{CHAINS['base'].title}: the contract gave no answer"


async def test_members_whose_tokens_are_read_one_by_one_are_reconciled_a_few_at_a_time(end: Front) -> None:
    (server,) = await community.people(reconciler.FEW * 3)
    await community.rules(server, CONTRACTS[:1])
    async with transaction() as db:
        await db.execute(text("UPDATE rule SET expression = jsonb_set(expression, '{type}', '\"any_nft\"')"))
        await sweep.start_sweep(db)
    worker = Reconciler(asyncio.Event())
    await worker.once()
    assert await rows("due") == reconciler.FEW * 3, "who has no answer yet comes up again"
    async with transaction() as db:
        looked = await db.execute(text("SELECT count(*) FROM due WHERE attempts = 1 AND claimed_by IS NULL"))
        free = await db.execute(text("SELECT count(*) FROM due WHERE attempts = 0 AND claimed_by IS NULL"))
        assert (looked.scalar_one(), free.scalar_one()) == (reconciler.FEW, reconciler.FEW * 2)


async def test_a_first_sweep_in_which_everybody_gets_every_role(end: Front, node: str) -> None:
    members = 1_300
    whole = [address(600 + n) for n in range(6)]
    for contract in whole:
        await deploy(node, contract, "1 0 MSTORE 32 0 RETURN")  # one token for every wallet that is asked about
    (server,) = await community.people(members)
    await community.rules(server, whole)
    async with transaction() as db:
        await sweep.start_sweep(db)
    await Reconciler(asyncio.Event()).once()
    assert await rows("grant") == members * len(whole), "more lines than one statement can take"
    assert await rows("due") == 0
