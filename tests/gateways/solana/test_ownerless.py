"""An asset whose owner the index does not say is unknown, never gone."""

from typing import Any

import pytest

from gateways.chains.read_point import ReadPoint
from gateways.chains.token_sheet import TokenHints
from gateways.solana.client import SolanaChains
from tests.gateways.solana.asset_index import COLLECTION, OTHER, OWNER, SOLANA, TOKENS, Index, asset
from tests.gateways.solana.asset_index import chains as chains
from tests.gateways.solana.asset_index import no_waiting as no_waiting
from tests.gateways.solana.asset_index import node as node
from tests.gateways.solana_stand_in import StandIn


@pytest.mark.parametrize("nobody", ["", None])
@pytest.mark.parametrize("endpoint", [None, 0])
async def test_a_token_that_was_held_before_is_unknown(
    node: StandIn, chains: SolanaChains, nobody: Any, endpoint: int | None
) -> None:
    index = Index(node, asset(TOKENS[1], OTHER))
    index.known = {TOKENS[0]: asset(TOKENS[0], nobody)}
    trails = {OWNER: TokenHints(frozenset({TOKENS[0]}))}
    sheet = await chains.tokens(SOLANA, COLLECTION, [OWNER], trails=trails, at=ReadPoint(endpoint))
    assert OWNER in sheet.unsure


@pytest.mark.parametrize("nobody", ["", None])
@pytest.mark.parametrize("endpoint", [None, 0])
async def test_a_token_that_a_rule_names_is_unknown(
    node: StandIn, chains: SolanaChains, nobody: Any, endpoint: int | None
) -> None:
    index = Index(node, asset(TOKENS[1], OTHER))
    index.known = {TOKENS[0]: asset(TOKENS[0], nobody)}
    sheet = await chains.tokens(SOLANA, COLLECTION, [OWNER], token_ids=[TOKENS[0]], at=ReadPoint(endpoint))
    assert OWNER in sheet.unsure
