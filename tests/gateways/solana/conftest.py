"""Fixtures for the tests of Solana's gateway: the sandbox's ledger, and the product's client of it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateways.solana.client import SolanaChains
from gateways.solana.node import SolanaNodes
from tests.sandbox.chains.otters import Otters, running


@pytest.fixture
async def otters(tmp_path: Path) -> AsyncIterator[Otters]:
    """A sandbox without EVM nodes and marketplaces."""
    async with running(tmp_path / "sandbox") as made:
        yield made


@pytest.fixture
async def chains(otters: Otters) -> AsyncIterator[SolanaChains]:
    """The client of that sandbox's endpoint."""
    nodes = SolanaNodes([f"{str(otters.http.base_url).rstrip('/')}/solana"], request_seconds=2, deadline=6)
    yield SolanaChains(nodes)
    await nodes.close()
