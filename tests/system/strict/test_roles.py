"""From the logs of nodes with the limits of real plans to the roles, on every chain."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable

import pytest

from gateways.chains.catalogue import CHAINS
from jobs.following import follower
from jobs.following.follower import Follower
from models import Cursor, transaction
from sandbox.chains.plans import PLANS
from services.rules.expression import Requirement, to_document
from services.runtime.task_cancellation import stop
from tests.jobs.conftest import Engine
from tests.jobs.town import STRANGER, Town, until

MISSED = {chain: 450 if chain == "arbitrum" else 150 for chain in PLANS}
"""Blocks made while nobody follows: on Arbitrum the plan splits them into many pieces, elsewhere one request has all.

In each case they are more than the blocks whose state the nodes keep.
"""
SETTLED = {chain: CHAINS[chain].settled_after + 3 for chain in PLANS}
"""Blocks after which a new contract is settled."""
ALL_CHAINS_SECONDS = 300
"""All chains are followed at once, and one processor has the nodes of all of them to run."""


@pytest.fixture
async def follow(town: Town, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Callable[[str], None]]:
    """A function that starts a chain's follower, which polls until the test ends."""
    monkeypatch.setenv("FOLLOW_SECONDS", "1")
    follower.settings.cache_clear()
    running: list[asyncio.Task[None]] = []
    yield lambda chain: running.append(asyncio.create_task(Follower(chain).run()))
    await stop(*running)


async def followed(chain: str) -> int:
    async with transaction() as db:
        row = await db.get(Cursor, chain)
    return row.block if row else -1


async def test_a_sale_is_followed_on_every_chain_also_after_a_pause(
    town: Town, engine: Engine, follow: Callable[[str], None]
) -> None:
    contracts: dict[str, str] = {}
    for chain in PLANS:
        made = await town.call(f"chains/{chain}/deploy", standard="ERC721", name="Strict", slug=uuid.uuid4().hex)
        contracts[chain] = made["contract"]
        role = await town.call("guilds", action="add_role", guild=town.name, role=f"On {chain}", name=f"On {chain}")
        assert role is not None
        await town.call(f"chains/{chain}/mine", blocks=SETTLED[chain])
    await town.see()
    for chain, contract in contracts.items():
        await town.change(
            await town.rule(f"On {chain}"), expression=to_document(Requirement("basic", chain, contract, 1))
        )
    await town.prove("carol")
    async with engine():
        for chain in PLANS:
            await Follower(chain).once()
        before = {chain: await followed(chain) for chain in PLANS}
        for chain in PLANS:
            await town.call(f"chains/{chain}/mine", blocks=MISSED[chain])
            await town.call(f"chains/{chain}/mint", contract=contracts[chain], token_id="1", to=town.wallet("carol"))
            follow(chain)
        for chain in PLANS:
            await until(lambda chain=chain: town.has("carol", f"On {chain}"), ALL_CHAINS_SECONDS)
            assert before[chain] >= 0
        for chain in PLANS:
            await town.call(f"chains/{chain}/transfer", contract=contracts[chain], token_id="1", to=STRANGER)

        async def none_left() -> bool:
            guild = await town.guild()
            ours = {role["id"] for role in guild["roles"] if role["name"].startswith("On ")}
            carol = next(one for one in guild["members"] if one["user_id"] == town.people["carol"]["id"])
            return ours.isdisjoint(carol["roles"])

        await until(none_left, ALL_CHAINS_SECONDS)
