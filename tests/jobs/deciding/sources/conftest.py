"""Fixtures for tests of several sources: sources of traits whose answers a test sets, and reads of a grant's state."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import cast

import pytest
from sqlmodel import col, select

from gateways import close_gateways, gateways, use_gateways
from gateways.chains.catalogue import CHAINS
from gateways.chains.metadata_traits import Trait, TraitList
from gateways.marketplaces.opensea import OpenSea
from gateways.metadata import TokenMetadata
from gateways.transport.errors import ProviderDown
from locales.stored_texts import said
from models import Due, transaction
from services.rules.expression import Requirement, to_document
from settings import settings
from tests.jobs.conftest import Engine
from tests.jobs.town import Town
from tests.jobs.watching import given, grants

GOLD, REFRESHING = TraitList((Trait("Fur", "Gold"),)), TraitList((Trait("Status", "Refreshing"),))


@dataclass
class Teller:
    """A source of traits that gives the same answer for every token, or none."""

    said: TraitList | None
    asked: int = 0

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""

    async def nft(self, chain: str, contract: str, token_id: str) -> TraitList:
        self.asked += 1
        if self.said is None:
            raise ProviderDown("OpenSea", "HTTP 500")
        return self.said

    async def nfts(self, chain: str, tokens: Sequence[tuple[str, str]]) -> dict[tuple[str, str], TraitList]:
        return {token: await self.nft(chain, *token) for token in tokens}

    async def traits(
        self, chain: str, contract: str, token_ids: Sequence[str], *, apart_from: str = ""
    ) -> dict[str, TraitList | ProviderDown]:
        self.asked += 1
        return dict.fromkeys(token_ids, self.said or ProviderDown("Token metadata", "HTTP 504"))


@pytest.fixture
def opensea() -> Teller:
    return Teller(GOLD)


@pytest.fixture
def metadata() -> Teller:
    return Teller(GOLD)


@pytest.fixture
async def gold(town: Town, opensea: Teller, metadata: Teller) -> Town:
    """A rule for gold fur; carol has proved her wallet and holds a token."""
    use_gateways(replace(gateways(), opensea=cast(OpenSea, opensea), metadata=cast(TokenMetadata, metadata)))
    await town.buys("carol")
    leaf = Requirement("trait", "base", town.contract, traits=(("Fur", "Gold"),))
    await town.change(await town.rule("Holder"), expression=to_document(leaf))
    return town


@pytest.fixture
def always_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Traits are read from outside on every reconcile."""
    monkeypatch.setattr("services.collections.stored_traits.fresh_for", lambda: timedelta(0))


async def earned(town: Town, engine: Engine) -> None:
    """Prove carol's wallet and wait until the engine has given her the role, then stop the engine."""
    async with engine():
        await town.prove("carol")
        await given(town)


async def states(town: Town) -> list[str]:
    """Return the state of every role of the town in the ledger."""
    return [row.state for row in await grants(town)]


async def reasons(town: Town) -> set[str | None]:
    """Return the reasons why the town's members are queued, in English."""
    async with transaction() as db:
        mine = col(Due.key).startswith(f"{town.server_id}:")
        return {said(reason) if reason else reason for reason in (await db.exec(select(Due.reason).where(mine))).all()}


async def one_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave only Base's first node in use from now on."""
    monkeypatch.setenv("RPC_BASE", settings().rpc["base"][0])
    settings.cache_clear()
    await close_gateways()


def settles_after(monkeypatch: pytest.MonkeyPatch, blocks: int) -> None:
    monkeypatch.setitem(CHAINS, "base", replace(CHAINS["base"], settled_after=blocks))
