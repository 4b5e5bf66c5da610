"""Rules on a chain that was removed from CHAINS_FILE: their conditions are unknown, and nobody loses a role by it."""

from gateways import gateways
from models import now
from services.health import provider_health
from services.rules.expression import Requirement, to_document
from tests.jobs.conftest import Engine
from tests.jobs.town import Town
from tests.jobs.watching import given, grants, looked_at


async def test_nobody_gains_or_loses_a_role_on_a_chain_that_is_gone(town: Town, engine: Engine) -> None:
    await town.buys("carol")
    rule_id = await town.rule("Holder")
    async with engine():
        await town.prove("carol")
        await given(town)
    start = await town.mark()
    leaf = Requirement("basic", "ninth", town.contract, 1)
    await town.change(rule_id, blockchain="ninth", expression=to_document(leaf))
    await town.prove("dave")
    await looked_at(town)
    assert [row.state for row in await grants(town)] == ["held"]
    assert await town.writes(start) == []
    shown = provider_health.providers(gateways(), {}, frozenset({"ninth"}), now())
    assert [(one.state, one.name, one.text) for one in shown if one.chain == "ninth"] == [
        ("bad", "Ninth", "No node is set for Ninth, so rules on it are off.")
    ]
