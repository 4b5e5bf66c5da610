"""Where to look for tokens: what is kept from one look to the next, and what leaves again."""

import pytest
from sqlmodel import select

from gateways.chains.token_sheet import Trail
from models import TokenTrail, transaction
from services.holdings import token_hints

ANN, BEN, CATS = "ann", "ben", "cats"


async def keep(*found: tuple[str, Trail]) -> dict[str, Trail]:
    """Remember trails in one go; all that is known then."""
    async with transaction() as db:
        await token_hints.remember(db, [("solana", CATS, owner, trail) for owner, trail in found])
    async with transaction() as db:
        return dict((await token_hints.load(db, "solana", [CATS], [ANN, BEN]))[CATS])


@pytest.mark.usefixtures("database")
async def test_ids_are_added_and_only_dropped_ones_leave() -> None:
    first = Trail(frozenset({"1", "2", "3"}), {0: (1, 9)}, {"1": 100, "2": 104})
    assert await keep((ANN, first), (BEN, Trail(frozenset({"1"})))) == {ANN: first, BEN: Trail(frozenset({"1"}))}
    found = await keep((ANN, Trail(frozenset({"3", "4"}), {0: (1, 20)}, {"2": 104}, frozenset({"1"}))))
    assert found[ANN] == Trail(frozenset({"2", "3", "4"}), {0: (1, 20)}, {"2": 104})
    assert found[BEN] == Trail(frozenset({"1"})), "somebody else's trail stays"
    found = await keep((ANN, Trail(frozenset({"3", "4"}), {}, {}, frozenset({"2", "never there"}))))
    assert found[ANN].ids == {"3", "4"}


@pytest.mark.usefixtures("database")
async def test_two_looks_of_one_round_are_kept_as_one() -> None:
    one = Trail(frozenset({"1", "2"}), {}, {"2": 105})
    other = Trail(frozenset({"2", "5"}), {}, {"2": 101, "5": 101}, frozenset({"5", "1", "9"}))
    found = await keep((ANN, one), (ANN, other))
    assert found[ANN] == Trail(frozenset({"1", "2", "5"}), {}, {"2": 101, "5": 101})
    async with transaction() as db:
        (row,) = (await db.exec(select(TokenTrail))).all()
    assert row.ids == ["1", "2", "5"]


@pytest.mark.usefixtures("database")
async def test_trails_of_any_number_of_wallets_are_found() -> None:
    """A statement takes 65,535 parameters, and anybody may delegate hundreds of vaults to a member's wallet."""
    await keep((ANN, Trail(frozenset({"1"}))))
    others = [f"vault {number}" for number in range(70_000)]
    async with transaction() as db:
        assert await token_hints.load(db, "solana", [CATS], [*others, ANN]) == {CATS: {ANN: Trail(frozenset({"1"}))}}
