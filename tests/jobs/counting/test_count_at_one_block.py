"""A collection that an index lists is read at one block; its whole history is read only if that fails."""

import pytest
from sqlalchemy import text
from sqlmodel import select

from gateways import close_gateways, gateways
from gateways.transport.errors import ProviderDown
from models import Census, transaction
from services.collections import standards
from services.collections.census import count_at_one_block
from settings import settings
from tests.jobs.counting.counts import NOBODY, leaf, numbers, stale
from tests.jobs.counting.test_census import ledger
from tests.jobs.town import Town


@pytest.fixture
async def indexed(town: Town, monkeypatch: pytest.MonkeyPatch) -> str:
    """The index's key is set, and the contract is the chain's own enumerable collection."""
    monkeypatch.setenv("ALCHEMY_API_KEY", "sandbox-alchemy-key")
    settings.cache_clear()
    await close_gateways()
    contract = await own(town, 1)
    await named(town, contract, "ERC721Enumerable")
    return contract


async def own(town: Town, place: int) -> str:
    world = (await town.control.get("/control/world")).json()
    return str(world["chains"]["base"]["collections"][place]["contract"]).lower()


async def named(town: Town, contract: str, standard: str) -> None:
    async with transaction() as db:
        await standards.remember(db, {(town.chain, contract): standard})


async def census(contract: str) -> Census:
    async with transaction() as db:
        return (await db.exec(select(Census).where(Census.contract == contract))).one()


async def test_its_holders_are_counted_without_reading_a_transfer(
    town: Town, indexed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def read(*_: object) -> None:
        raise AssertionError("the history was read")

    monkeypatch.setattr(type(gateways().histories), "read", read)
    held = await ledger(town, indexed)
    found = await numbers(town, leaf(town, contract=indexed))
    assert (found.state, found.holders, found.reason) == ("done", len(held), None)
    several = await numbers(town, leaf(town, contract=indexed, minTokens=2))
    assert several.holders == sum(1 for amount in held.values() if amount >= 2)
    (on_base,) = found.chains
    assert on_base.block
    assert (await census(indexed)).tokens == sum(held.values())


async def test_a_sale_is_in_the_next_count_whatever_the_index_says(town: Town, indexed: str) -> None:
    before = await ledger(town, indexed)
    first = await numbers(town, leaf(town, contract=indexed))
    assert first.holders == len(before)
    await town.break_("stale", "alchemy")
    token = (await tokens_of(town, indexed))[0]
    await town.call(f"chains/{town.chain}/transfer", contract=indexed, token_id=token, to=NOBODY)
    await town.call(f"chains/{town.chain}/mine", blocks=5)
    await stale()
    after = await ledger(town, indexed)
    assert after != before
    found = await numbers(town, leaf(town, contract=indexed))
    assert (found.state, found.holders) == ("done", len(after))


async def tokens_of(town: Town, contract: str) -> list[str]:
    world = (await town.control.get("/control/world")).json()
    listed = next(one for one in world["chains"][town.chain]["collections"] if one["contract"].lower() == contract)
    return [str(token["id"]) for token in listed["tokens"]]


@pytest.mark.parametrize("kind", ["down", "empty", "malformed", "429"])
async def test_an_index_that_fails_leaves_it_to_the_history(town: Town, indexed: str, kind: str) -> None:
    await town.break_(kind, "alchemy")
    held = await ledger(town, indexed)
    found = await numbers(town, leaf(town, contract=indexed))
    assert (found.state, found.holders) == ("done", len(held))
    assert (await census(indexed)).known is not None


async def test_an_index_that_leaves_a_token_out_is_not_believed(
    town: Town, indexed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (index,) = gateways().listings
    whole = await index.contract_tokens(town.chain, indexed, count_at_one_block.MOST_LISTED)

    async def short(*_: object) -> frozenset[int]:
        return frozenset(sorted(whole)[1:])

    monkeypatch.setattr(index, "contract_tokens", short)
    held = await ledger(town, indexed)
    found = await numbers(town, leaf(town, contract=indexed))
    assert (found.state, found.holders) == ("done", len(held))
    assert (await census(indexed)).known is not None


async def test_nodes_that_differ_about_an_owner_leave_it_to_the_history(
    town: Town, indexed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    histories = gateways().histories
    real, asked = histories.owners, list[int]()

    async def odd(chain: str, contract: str, tokens: list[int], head: object, node: int) -> dict[int, str] | None:
        found = await real(chain, contract, tokens, head, node)  # pyright: ignore[reportArgumentType]
        asked.append(node)
        return found if node == 0 or found is None else {**found, tokens[0]: "0x" + "0c" * 20}

    monkeypatch.setattr(histories, "owners", odd)
    held = await ledger(town, indexed)
    found = await numbers(town, leaf(town, contract=indexed))
    assert sorted(asked) == [0, 1]
    assert (found.state, found.holders) == ("done", len(held))


async def test_a_collection_that_does_not_state_its_supply_is_read_by_its_history(town: Town, indexed: str) -> None:
    plain = await own(town, 0)
    await named(town, plain, "ERC721")
    held = await ledger(town, plain)
    found = await numbers(town, leaf(town, contract=plain))
    assert (found.state, found.holders) == ("done", len(held))
    assert (await census(plain)).known is not None


async def test_the_history_begins_at_the_first_block_after_a_snapshot(
    town: Town, indexed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await numbers(town, leaf(town, contract=indexed))
    counted = await census(indexed)
    assert (counted.known, counted.moves) == (None, 0)
    (index,) = gateways().listings

    async def away(*_: object) -> frozenset[int]:
        raise ProviderDown("Alchemy", "no answer")

    monkeypatch.setattr(index, "contract_tokens", away)
    await stale()
    held = await ledger(town, indexed)
    found = await numbers(town, leaf(town, contract=indexed))
    assert (found.state, found.holders) == ("done", len(held))
    assert (await census(indexed)).moves >= sum(held.values()), "all of its transfers were read"
    async with transaction() as db:
        doubled = await db.execute(text("SELECT count(*) FROM census_token WHERE amount > 1"))
        assert doubled.scalar_one() == 0
