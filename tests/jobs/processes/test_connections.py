"""No connection to the database is held during a request to an outside service."""

import uuid
from collections.abc import Awaitable, Callable

import httpx
import pytest
from sqlalchemy import QueuePool
from sqlmodel import select

import models
from gateways import gateways
from models import AsyncSession, Event, transaction
from services.collections import collections
from services.engine.previews.plan import plan
from services.engine.previews.proposals import NewRule
from services.rules import rules
from services.rules.rules import RuleDraft
from services.servers import undo
from services.wallets import wallets
from tests.jobs.town import Town
from tests.jobs.watching import actor_of


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The number of database connections in use at the time of each request to a provider."""
    seen: list[tuple[str, int]] = []
    send = httpx.AsyncClient.send

    async def noting(client: httpx.AsyncClient, request: httpx.Request, **options: object) -> httpx.Response:
        if not request.url.path.startswith("/control/"):
            pool = models.engine().pool
            assert isinstance(pool, QueuePool)
            seen.append((request.url.path, pool.checkedout()))
        return await send(client, request, **options)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(httpx.AsyncClient, "send", noting)
    return seen


async def test_verifying_previewing_and_looking_collections_up_hold_none(
    town: Town, held: list[tuple[str, int]]
) -> None:
    await town.prove("dave")
    ada, carol = await actor_of(town, "ada"), await actor_of(town, "carol")
    other = await town.call("chains/base/deploy", standard="ERC721", name="Other", slug=uuid.uuid4().hex)
    draft = RuleDraft(
        "A rule", town.contract, "base", "basic", await town.role("Holder"), town.server_id, delegated=True
    )
    rule_id = 0

    async def write(db: AsyncSession) -> None:
        nonlocal rule_id
        rule_id = (await rules.create(db, gateways(), ada, draft)).id

    address = town.people["carol"]["wallets"]["evm"]
    steps: dict[str, Callable[[AsyncSession], Awaitable[object]]] = {
        "challenge": lambda db: wallets.challenge(db, gateways(), carol, address),
        "follow": lambda db: wallets.follow(db, gateways(), carol, address),
        "bio": lambda db: wallets.verify(db, gateways(), carol, address, wallets.BIO),
        "transaction": lambda db: wallets.verify(db, gateways(), carol, address, wallets.TRANSACTION),
        "pasted": lambda db: wallets.verify(
            db, gateways(), carol, address, wallets.TRANSACTION, "0x" + uuid.uuid4().hex * 2
        ),
        "pasted signature": lambda db: wallets.verify(
            db, gateways(), carol, town.people["carol"]["wallets"]["solana"], wallets.TRANSACTION, "2" * 88
        ),
        "parse": lambda db: collections.parse(db, gateways(), town.contract, "base"),
        "preview": lambda db: plan(db, gateways(), ada, NewRule(draft)),
        "create": write,
        "change": lambda db: rules.change(db, gateways(), ada, rule_id, {"contractAddress": other["contract"]}),
    }
    for name, step in steps.items():
        del held[:]
        async with transaction() as db:
            await step(db)
        asked = [one for one in held if one[1]]
        assert asked == [], name
        assert held or name == "challenge", name


async def test_previewing_an_undo_holds_none(town: Town, held: list[tuple[str, int]]) -> None:
    ada, rule_id = await actor_of(town, "ada"), await town.rule("Holder")
    async with transaction() as db:
        await rules.delete(db, gateways(), ada, rule_id)
    async with transaction() as db:
        batch = (await db.exec(select(Event.batch).where(Event.kind == "rule.deleted"))).one()
    assert batch is not None
    held.clear()
    async with transaction() as db:
        await undo.preview(db, gateways(), ada, town.server_id, batch)
    assert held
    assert all(taken == 0 for _path, taken in held), held
