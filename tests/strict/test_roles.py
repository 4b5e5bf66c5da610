"""From the logs of nodes with the limits of real plans to the roles, on every chain."""

import uuid

from jobs.follower import Follower
from sandbox.chains.plans import PLANS
from services.expressions import Requirement, to_document
from tests.jobs.conftest import Engine
from tests.jobs.test_engine import looked_at
from tests.jobs.test_kinds_of_rules import (
    test_every_type_on_every_standard_and_chain_says_yes_and_no as test_every_type_on_every_standard_and_chain,
)
from tests.jobs.test_kinds_of_rules import (
    test_roles_of_every_kind_come_with_the_tokens_and_go_with_them_after_a_second_look as test_roles_of_every_kind,
)
from tests.jobs.town import STRANGER, Town, until

__all__ = ["test_every_type_on_every_standard_and_chain", "test_roles_of_every_kind"]

MISSED = 150
"""Blocks that come while nobody follows: as many pieces as a plan makes of them are caught up with."""


async def test_a_sale_is_followed_on_every_chain_also_after_a_pause(town: Town, engine: Engine) -> None:
    contracts: dict[str, str] = {}
    followers = {chain: Follower(chain) for chain in PLANS}
    for chain in PLANS:
        made = await town.call(f"chains/{chain}/deploy", standard="ERC721", name="Strict", slug=uuid.uuid4().hex)
        contracts[chain] = made["contract"]
        await town.call("guilds", action="add_role", guild=town.name, role=f"On {chain}", name=f"On {chain}")
    await town.see()
    for chain, contract in contracts.items():
        leaf = to_document(Requirement("basic", chain, contract, 1))
        await town.change(await town.rule(f"On {chain}"), expression=leaf)
    await town.prove("carol")

    async def told_by_logs(chain: str, *, has: bool) -> bool:
        await followers[chain].once()
        return await town.has("carol", f"On {chain}") == has

    # So that nothing but the logs is left to tell of what comes.
    await looked_at(town)
    async with engine():
        for chain, follower in followers.items():
            await follower.once()
            await town.call(f"chains/{chain}/mine", blocks=MISSED)
            await town.call(f"chains/{chain}/mint", contract=contracts[chain], token_id="1", to=town.wallet("carol"))
        for chain in PLANS:
            await until(lambda chain=chain: told_by_logs(chain, has=True))
        for chain in PLANS:
            await town.call(f"chains/{chain}/transfer", contract=contracts[chain], token_id="1", to=STRANGER)
        for chain in PLANS:
            await until(lambda chain=chain: told_by_logs(chain, has=False))
