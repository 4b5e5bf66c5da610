"""Balances as last read: store those that changed, and which wallets were read at which block."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from gateways.chains.balance_sheet import BalanceSheet
from models.db.session import AsyncSession, Question, Rows, joined
from services.runtime.loop_steps import in_steps


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest balance snapshot of a wallet and a contract."""

    block: int
    source: str
    observed_at: datetime


@dataclass(frozen=True, slots=True)
class BalanceRead:
    """One reading of a server's wallets; `contracts` and `owners` may be fewer than the sheet's."""

    server_id: int
    contracts: Sequence[str]
    owners: Sequence[str]
    sheet: BalanceSheet


async def remember(db: AsyncSession, reads: Iterable[BalanceRead]) -> None:
    """Store trusted readings: two statements for each block and node, however many servers and wallets they have.

    Only changes get rows. Unknown or older readings overwrite nothing. A wallet with an unknown balance is left out of
    the snapshot; its known balances get rows of their own.
    """
    groups: dict[tuple[object, ...], list[BalanceRead]] = {}
    for read in reads:
        sheet = read.sheet
        groups.setdefault((sheet.chain, sheet.block, sheet.source, sheet.block_time), []).append(read)
    for some in groups.values():
        await _remember(db, some)


async def _remember(db: AsyncSession, reads: Iterable[BalanceRead]) -> None:
    """Store the readings of one node at one block."""
    said: dict[tuple[str, str], _Said] = {}
    told: list[tuple[tuple[str, ...], Sequence[str]]] = []
    sure: dict[tuple[str, int], tuple[str, ...]] = {}
    sheet: BalanceSheet | None = None
    async for read in in_steps(reads):
        contracts = tuple(one for one in read.contracts if read.sheet.unknown(one) < len(read.owners))
        if not contracts:
            continue
        sheet = read.sheet
        told.append((contracts, read.owners))
        unsure = {owner for contract in contracts for owner in _unknown(sheet, contract, read.owners)}
        for contract in contracts:
            for owner, amount in sheet.holders(contract):
                if owner not in unsure:
                    said[owner, contract] = (owner, contract, amount, True)
            for owner in unsure:
                amount = sheet.amount(contract, owner)
                if amount is not None or (owner, contract) not in said:
                    said[owner, contract] = (owner, contract, amount, False)
        sure.update(((owner, read.server_id), contracts) for owner in read.owners if owner not in unsure)
    if sheet is not None:
        _write(db, sheet, told, list(said.values()))
        if sure:
            _note(db, sheet, sure)


_Said = tuple[str, str, int | None, bool]
"""A wallet, a contract, the amount, and whether to store it only if it changed."""


def _unknown(sheet: BalanceSheet, contract: str, owners: Sequence[str]) -> list[str]:
    """Return the wallets for which a contract gave no answer."""
    if sheet.unknown(contract) == 0:
        return []
    return [owner for owner in owners if sheet.amount(contract, owner) is None]


_OF_ONE = "contract = ANY(string_to_array(:told, ','))"
_OF_MANY = """((address, contract) IN (
    SELECT o.address, c.contract
    FROM unnest(string_to_array(:owners, ','), CAST(string_to_array(:places, ',') AS integer[])) AS o (address, place),
    LATERAL unnest(string_to_array((SELECT string_to_array(:told, ','))[o.place], ' ')) AS c (contract))) IS TRUE"""
"""The condition if wallets have different contracts. IN uses a hashed set; a join might compare all with all."""


def _write(
    db: AsyncSession, sheet: BalanceSheet, told: Sequence[tuple[tuple[str, ...], Sequence[str]]], said: Sequence[_Said]
) -> None:
    """Store the amounts in `said`; a wallet that is not in it holds nothing of the contracts that answered for it."""
    several = len(told) > 1
    # A fixed order, so that two workers with the same wallets wait for each other instead of deadlocking. PostgreSQL
    # runs IN as a hash lookup, however few rows it expects; a join might compare all with all.
    db.later(
        f"""
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
            AND {_OF_MANY if several else _OF_ONE} AND amount <> 0
            AND (address, contract) NOT IN (SELECT address, contract FROM said)
        ) changes ORDER BY address, contract
        ON CONFLICT (chain, address, contract) DO UPDATE SET amount = EXCLUDED.amount, block = EXCLUDED.block,
            source = EXCLUDED.source, observed_at = EXCLUDED.observed_at
            WHERE observation.block <= EXCLUDED.block
        """,
        {
            "chain": sheet.chain, "block": sheet.block, "source": sheet.source, "at": sheet.block_time,
            "owners": joined(owner for _, owners in told for owner in owners),
            "wallets": joined(one[0] for one in said), "counted": joined(one[1] for one in said),
            "changes": joined(one[3] for one in said),
            "amounts": joined("" if one[2] is None else one[2] for one in said),
            **(
                {
                    "told": joined(" ".join(contracts) for contracts, _ in told),
                    "places": joined(place for place, (_, owners) in enumerate(told, 1) for _ in owners),
                }
                if several
                else {"told": joined(told[0][0])}
            ),
        },
    )  # fmt: skip


def _note(db: AsyncSession, sheet: BalanceSheet, sure: Mapping[tuple[str, int], tuple[str, ...]]) -> None:
    """Record which contracts answered for each wallet (and server): one snapshot per set of contracts and block."""
    numbers = {contracts: number for number, contracts in enumerate(dict.fromkeys(sure.values()), 1)}
    listed = sorted(sure)
    # A snapshot's id is found by its place in an array, so that no join is needed: ids ascend in the order of the rows.
    db.later(
        """
        WITH made AS (
            INSERT INTO survey (chain, block, source, observed_at, contracts)
            SELECT :chain, :block, :source, :at, string_to_array(t.told, ' ')
            FROM unnest(string_to_array(:told, ',')) WITH ORDINALITY AS t (told, n) ORDER BY t.n RETURNING id
        )
        INSERT INTO surveyed (chain, address, server_id, survey_id)
        SELECT :chain, a.address, a.server_id, (SELECT array_agg(id ORDER BY id) FROM made)[a.n]
        FROM unnest(string_to_array(:sure, ','), CAST(string_to_array(:servers, ',') AS integer[]),
                    CAST(string_to_array(:numbers, ',') AS integer[])) AS a (address, server_id, n)
        ORDER BY a.address, a.server_id
        ON CONFLICT (chain, address, server_id) DO UPDATE SET survey_id = EXCLUDED.survey_id
            WHERE COALESCE((SELECT s.block FROM survey s WHERE s.id = surveyed.survey_id), 0) <= :block
        """,
        {
            "chain": sheet.chain, "block": sheet.block, "source": sheet.source, "at": sheet.block_time,
            "told": joined(" ".join(contracts) for contracts in numbers),
            "sure": joined(owner for owner, _ in listed), "servers": joined(server_id for _, server_id in listed),
            "numbers": joined(numbers[sure[one]] for one in listed),
        },
    )  # fmt: skip


async def newest(
    db: AsyncSession, contracts: Sequence[str], addresses: Sequence[str]
) -> Mapping[tuple[str, str, str], Newest]:
    """Return the newest snapshot by chain, contract and wallet."""
    result = await db.execute(
        """
        SELECT d.chain, c.contract, d.address, s.block, s.source, s.observed_at
        FROM surveyed d JOIN survey s ON s.id = d.survey_id
        CROSS JOIN unnest(s.contracts) AS c (contract)
        WHERE d.address = ANY(string_to_array(:addresses, ',')) AND d.chain = s.chain
        AND c.contract = ANY(string_to_array(:contracts, ','))
        ORDER BY s.block
        """,
        {"addresses": joined(addresses), "contracts": joined(contracts)},
    )
    return {
        (str(chain), str(contract), str(address)): Newest(int(block), str(source), observed_at)
        for chain, contract, address, block, source, observed_at in result.all()
    }


Asked = tuple[Sequence[str], Sequence[str]]
"""Contracts and wallets."""


def newest_blocks(chain: str, asked: Sequence[Asked]) -> Question:
    """Return a query for the newest block at which any of these wallets' balances was read, or a token of theirs moved.

    Older answers are useless. `blocks_of` reads the rows, one result for each of `asked`. Tokens counted one by one are
    covered by `newest_tally`.
    """
    contracts = sorted({contract for some, _ in asked for contract in some})
    owners = [owner for _, some in asked for owner in some]
    of_each = len(asked) > 1
    statement = _NEWEST_OF_EACH if of_each else _NEWEST
    return statement, {"chain": chain, "owners": joined(owners), "contracts": joined(contracts)}


def blocks_of(asked: Sequence[Asked], rows: Rows) -> list[int]:
    """Return the newest block for each of `asked`; 0 if nothing is known."""
    if len(asked) == 1:
        return [block for (block,) in rows]
    newest: dict[str, int] = dict(rows)
    return [max((newest.get(owner, 0) for owner in owners), default=0) for _, owners in asked]


def followed_heads(chains: Sequence[str]) -> Question:
    """Return a query for the newest block of each of these chains, as their followers know it.

    One row a chain: its key and the block. A chain whose follower has not advanced lately is left out.
    """
    statement = """
        SELECT chain, head FROM cursor WHERE chain = ANY(string_to_array(:chains, ',')) AND head > 0
        AND updated_at > now() - interval '90 seconds'
    """
    return statement, {"chains": joined(chains)}


def newest_tally(chain: str, contracts: Sequence[str], owners: Sequence[str]) -> Question:
    """Return a query for the newest block at which these contracts' tokens were counted one by one for these wallets.

    One row; 0 if nothing is known.
    """
    statement = """
        SELECT coalesce(max(block), 0) FROM tally
        WHERE chain = :chain AND contract = ANY(string_to_array(:contracts, ','))
        AND address = ANY(string_to_array(:owners, ','))
    """
    return statement, {"chain": chain, "owners": joined(owners), "contracts": joined(contracts)}


_NEWEST = """
    SELECT coalesce(max(block), 0) FROM (
        SELECT max(s.block) AS block FROM survey s WHERE s.id IN (
            SELECT DISTINCT d.survey_id FROM surveyed d
            WHERE d.chain = :chain AND d.address = ANY(string_to_array(:owners, ',')))
        UNION ALL SELECT max(block) FROM observation
        WHERE chain = :chain AND address = ANY(string_to_array(:owners, ','))
        AND contract = ANY(string_to_array(:contracts, ','))
        UNION ALL SELECT max(block) FROM sighting
        WHERE chain = :chain AND address = ANY(string_to_array(:owners, ','))
    ) seen
"""
_NEWEST_OF_EACH = """
    SELECT address, max(block) FROM (
        SELECT d.address, s.block FROM surveyed d JOIN survey s ON s.id = d.survey_id
        WHERE d.chain = :chain AND d.address = ANY(string_to_array(:owners, ','))
        UNION ALL SELECT address, block FROM observation
        WHERE chain = :chain AND address = ANY(string_to_array(:owners, ','))
        UNION ALL SELECT address, block FROM sighting
        WHERE chain = :chain AND address = ANY(string_to_array(:owners, ','))
    ) seen GROUP BY address
"""


async def forget_replaced(db: AsyncSession) -> None:
    """Delete snapshots that are not a wallet's newest; those of a running sweep are kept."""
    await db.execute(
        "DELETE FROM survey s WHERE s.observed_at < now() - interval '1 day' "
        "AND NOT EXISTS (SELECT 1 FROM surveyed d WHERE d.survey_id = s.id)"
    )
