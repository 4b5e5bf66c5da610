"""What bulk readings of balances told, kept in sets: what changed, and for whom everything was read at which block."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text

from gateways.chains import BalanceSheet
from models.session import AsyncSession, Question, joined


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest survey that a wallet and a contract were in."""

    block: int
    source: str
    observed_at: datetime


def remember(
    db: AsyncSession, server_id: int, contracts: Sequence[str], owners: Sequence[str], sheet: BalanceSheet
) -> None:
    """Keep a trusted reading: two statements, however many wallets it has, and rows for changes only.

    What is unknown overwrites nothing, nor does an older block. A wallet of which something is unknown does not count
    as surveyed; what is known of it gets rows of its own.
    """
    told = [contract for contract in contracts if sheet.unknown(contract) < len(owners)]
    if not told:
        return
    unsure = {owner for contract in told for owner in _unknown(sheet, contract, owners)}
    said: list[_Said] = [
        (owner, contract, amount, True)
        for contract in told
        for owner, amount in sheet.holders(contract)
        if owner not in unsure
    ]
    said += [(owner, contract, sheet.amount(contract, owner), False) for owner in unsure for contract in told]
    _write(db, sheet, told, owners, said)
    sure = [owner for owner in owners if owner not in unsure] if unsure else owners
    if sure:
        _note(db, server_id, sheet, told, sure)


_Said = tuple[str, str, int | None, bool]
"""A wallet, a contract, how many it told, and whether that is written down only where it is a change."""


def _unknown(sheet: BalanceSheet, contract: str, owners: Sequence[str]) -> list[str]:
    """The wallets of which a contract gave no answer."""
    if sheet.unknown(contract) == 0:
        return []
    return [owner for owner in owners if sheet.amount(contract, owner) is None]


def _write(
    db: AsyncSession, sheet: BalanceSheet, told: Sequence[str], owners: Sequence[str], said: Sequence[_Said]
) -> None:
    """Write down what is said; of whom nothing is said, they hold nothing of what told."""
    # Always in the same order, so that two workers with the same wallets wait for each other instead of deadlocking.
    # What is not IN is looked up by its hash however few rows are expected; a join might compare each with each.
    db.later(
        """
        WITH said AS MATERIALIZED (
            SELECT * FROM unnest(
                string_to_array(:wallets, ','), string_to_array(:counted, ','),
                CAST(string_to_array(:amounts, ',', '') AS numeric[]), CAST(string_to_array(:changes, ',') AS boolean[])
            ) AS s (address, contract, amount, if_changed)
        )
        INSERT INTO observation (chain, address, contract, amount, block, source, observed_at)
        SELECT CAST(:chain AS text), address, contract, amount, :block, :source, :at FROM (
            SELECT address, contract, amount FROM said s
            WHERE amount IS NOT NULL AND NOT (if_changed AND EXISTS (
                SELECT FROM observation o WHERE o.chain = :chain AND o.address = s.address AND o.contract = s.contract
                AND o.amount = s.amount))
            UNION ALL
            SELECT address, contract, 0 FROM observation
            WHERE chain = :chain AND address = ANY(string_to_array(:owners, ','))
            AND contract = ANY(string_to_array(:told, ',')) AND amount <> 0
            AND (address, contract) NOT IN (SELECT address, contract FROM said)
        ) changes ORDER BY address, contract
        ON CONFLICT (chain, address, contract) DO UPDATE SET amount = EXCLUDED.amount, block = EXCLUDED.block,
            source = EXCLUDED.source, observed_at = EXCLUDED.observed_at
            WHERE observation.block <= EXCLUDED.block
        """,
        {
            "chain": sheet.chain, "block": sheet.block, "source": sheet.source, "at": sheet.block_time,
            "owners": joined(owners), "told": joined(told), "wallets": joined(one[0] for one in said),
            "counted": joined(one[1] for one in said), "changes": joined(one[3] for one in said),
            "amounts": joined("" if one[2] is None else one[2] for one in said),
        },
    )  # fmt: skip


def _note(db: AsyncSession, server_id: int, sheet: BalanceSheet, told: Sequence[str], sure: Sequence[str]) -> None:
    """Note of these wallets that all these contracts told of them at the sheet's block."""
    db.later(
        """
        WITH made AS (
            INSERT INTO survey (chain, block, source, observed_at, contracts)
            VALUES (:chain, :block, :source, :at, string_to_array(:told, ',')) RETURNING id
        )
        INSERT INTO surveyed (chain, address, server_id, survey_id)
        SELECT :chain, a, :server, made.id FROM unnest(string_to_array(:sure, ',')) AS a, made ORDER BY a
        ON CONFLICT (chain, address, server_id) DO UPDATE SET survey_id = EXCLUDED.survey_id
        """,
        {
            "chain": sheet.chain, "block": sheet.block, "source": sheet.source, "at": sheet.block_time,
            "told": joined(told), "sure": joined(sure), "server": server_id,
        },
    )  # fmt: skip


async def newest(
    db: AsyncSession, contracts: Sequence[str], addresses: Sequence[str]
) -> Mapping[tuple[str, str, str], Newest]:
    """By chain, contract and wallet the newest survey that told of them."""
    result = await db.execute(
        text(
            """
            SELECT d.chain, c.contract, d.address, s.block, s.source, s.observed_at
            FROM surveyed d JOIN survey s ON s.id = d.survey_id
            CROSS JOIN unnest(s.contracts) AS c (contract)
            WHERE d.address = ANY(string_to_array(:addresses, ',')) AND d.chain = s.chain
            AND c.contract = ANY(string_to_array(:contracts, ','))
            ORDER BY s.block
            """
        ),
        {"addresses": joined(addresses), "contracts": joined(contracts)},
    )
    return {
        (str(chain), str(contract), str(address)): Newest(int(block), str(source), observed_at)
        for chain, contract, address, block, source, observed_at in result.all()
    }


def newest_block(chain: str, contracts: Sequence[str], owners: Sequence[str]) -> Question:
    """For the newest block at which any of these wallets was seen, or something of these contracts moved, in one row.

    0 where nothing is known. An older answer is of no use.
    """
    statement = """
        SELECT coalesce(max(block), 0) FROM (
            SELECT max(s.block) AS block FROM survey s WHERE s.id IN (
                SELECT DISTINCT d.survey_id FROM surveyed d
                WHERE d.chain = :chain AND d.address = ANY(string_to_array(:owners, ',')))
            UNION ALL SELECT max(block) FROM observation
            WHERE chain = :chain AND address = ANY(string_to_array(:owners, ','))
            AND contract = ANY(string_to_array(:contracts, ','))
            UNION ALL SELECT max(block) FROM tally
            WHERE chain = :chain AND contract = ANY(string_to_array(:contracts, ','))
            AND address = ANY(string_to_array(:owners, ','))
            UNION ALL SELECT max(block) FROM sighting
            WHERE chain = :chain AND address = ANY(string_to_array(:owners, ','))
        ) seen
    """
    return statement, {"chain": chain, "owners": joined(owners), "contracts": joined(contracts)}


async def forget_replaced(db: AsyncSession) -> None:
    """Delete surveys that no wallet's newest one is any more; a running round's are let be."""
    await db.execute(
        text(
            "DELETE FROM survey s WHERE s.observed_at < now() - interval '1 day' "
            "AND NOT EXISTS (SELECT 1 FROM surveyed d WHERE d.survey_id = s.id)"
        )
    )
