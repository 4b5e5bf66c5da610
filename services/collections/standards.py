"""The token standard of a contract: read when a rule names it, and stored with the collection's name."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from models import Collection
from models.db.row import upsert
from models.db.session import AsyncSession, Question, joined
from services.core.addresses import shorten

ContractKey = tuple[str, str]
"""A chain and a contract."""

MANY = "ERC1155"
"""The standard whose amounts are reported only token by token."""
UNNAMED = "balanceOf"
"""The standard of contracts that only state how many tokens a wallet has (CryptoPunks)."""
ONE_BY_ONE = "ERC721"
"""Prefix of the standards whose tokens exist once each."""


def question(places: Iterable[ContractKey]) -> Question:
    """Return a statement for `AsyncSession.together`: chain, contract and standard of each contract already known."""
    wanted = sorted(set(places))
    statement = """
        SELECT k.chain, k.contract, k.standard
        FROM unnest(string_to_array(:chains, ','), string_to_array(:contracts, ',')) AS w (chain, contract)
        JOIN collection k ON k.chain = w.chain AND k.contract = w.contract WHERE k.standard IS NOT NULL
    """
    return statement, {
        "chains": joined(chain for chain, _ in wanted),
        "contracts": joined(contract for _, contract in wanted),
    }


def answered(rows: Iterable[Sequence[str]]) -> dict[ContractKey, str]:
    """Return the standards by chain and contract from the rows of `question`."""
    return {(chain, contract): standard for chain, contract, standard in rows}


async def known(db: AsyncSession, places: Iterable[ContractKey]) -> dict[ContractKey, str]:
    """Return the stored standards by chain and contract."""
    (rows,) = await db.together(question(places))
    return answered(rows)


async def remember(
    db: AsyncSession, found: Mapping[ContractKey, str], named: Mapping[ContractKey, str] | None = None
) -> None:
    """Store the standards of contracts, and for those without a stored name the names that they state (`named`).

    Such a name is stored as outdated, so that the next lookup asks for the name people know.
    """
    if not found:
        return
    names = named or {}
    long_ago = datetime.fromtimestamp(0, UTC)
    rows = [
        {"chain": chain, "contract": contract, "name": names.get((chain, contract)) or shorten(contract), "source": "",
         "standard": standard, "updated_at": long_ago}
        for (chain, contract), standard in sorted(found.items())
    ]  # fmt: skip
    await db.execute(upsert(Collection, rows, ("chain", "contract"), ("standard",)))
