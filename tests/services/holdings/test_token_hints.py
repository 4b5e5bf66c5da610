"""Where to look for tokens: what is stored from one look to the next, and what is removed again."""

import pytest
from sqlmodel import select

from gateways.chains.token_sheet import TokenHints
from models import TokenTrail, transaction
from services.holdings import token_hints

ANN, BEN, CATS = "ann", "ben", "cats"


async def keep(*found: tuple[str, TokenHints]) -> dict[str, TokenHints]:
    """Store trails together, and return everything that is stored then."""
    async with transaction() as db:
        await token_hints.remember(db, [("solana", CATS, owner, trail) for owner, trail in found])
    async with transaction() as db:
        return dict((await token_hints.load(db, "solana", [CATS], [ANN, BEN]))[CATS])


@pytest.mark.usefixtures("database")
async def test_ids_are_added_and_only_dropped_ones_leave() -> None:
    first = TokenHints(frozenset({"1", "2", "3"}), {0: (1, 9)}, {"1": 100, "2": 104})
    assert await keep((ANN, first), (BEN, TokenHints(frozenset({"1"})))) == {
        ANN: first,
        BEN: TokenHints(frozenset({"1"})),
    }
    found = await keep((ANN, TokenHints(frozenset({"3", "4"}), {0: (1, 20)}, {"2": 104}, frozenset({"1"}))))
    assert found[ANN] == TokenHints(frozenset({"2", "3", "4"}), {0: (1, 20)}, {"2": 104})
    assert found[BEN] == TokenHints(frozenset({"1"})), "somebody else's trail stays"
    found = await keep((ANN, TokenHints(frozenset({"3", "4"}), {}, {}, frozenset({"2", "never there"}))))
    assert found[ANN].ids == {"3", "4"}


@pytest.mark.usefixtures("database")
async def test_two_looks_of_one_round_are_kept_as_one() -> None:
    one = TokenHints(frozenset({"1", "2"}), {}, {"2": 105})
    other = TokenHints(frozenset({"2", "5"}), {}, {"2": 101, "5": 101}, frozenset({"5", "1", "9"}))
    found = await keep((ANN, one), (ANN, other))
    assert found[ANN] == TokenHints(frozenset({"1", "2", "5"}), {}, {"2": 101, "5": 101})
    async with transaction() as db:
        (row,) = (await db.exec(select(TokenTrail))).all()
    assert row.ids == ["1", "2", "5"]


@pytest.mark.usefixtures("database")
async def test_trails_of_any_number_of_wallets_are_found() -> None:
    """A statement takes at most 65,535 parameters, and anybody may delegate hundreds of vaults to a member's wallet."""
    await keep((ANN, TokenHints(frozenset({"1"}))))
    others = [f"vault {number}" for number in range(70_000)]
    async with transaction() as db:
        assert await token_hints.load(db, "solana", [CATS], [*others, ANN]) == {
            CATS: {ANN: TokenHints(frozenset({"1"}))}
        }
