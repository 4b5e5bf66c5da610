"""Properties of a form that cannot be read are unknown, not a token without traits."""

from typing import Any

import pytest

from gateways.chains.metadata_traits import NoMetadata, TraitList, of_metadata
from tests.jobs.conftest import Engine
from tests.jobs.deciding.sources.conftest import Teller, earned, states
from tests.jobs.town import Town
from tests.jobs.watching import looked_at


@pytest.mark.usefixtures("always_fresh")
@pytest.mark.parametrize(
    "document",
    [
        {"name": "Token 1", "properties": {"traits": [{"trait_type": "Fur", "value": "Gold"}]}},
        {"name": "Token 1", "properties": {"Fur": {"type": "string", "description": "Gold"}}},
    ],
)
async def test_nobody_loses_a_role_by_them(
    gold: Town, engine: Engine, opensea: Teller, metadata: Teller, document: dict[str, Any]
) -> None:
    try:
        metadata.said = of_metadata(document)
    except NoMetadata:
        metadata.said = None  # as `TokenMetadata` does, it has no traits and a reason
    await earned(gold, engine)
    opensea.said = TraitList(())  # being refreshed
    for _ in range(3):
        await looked_at(gold)
    assert await states(gold) == ["held"]
