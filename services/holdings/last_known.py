"""The last known holdings of wallets for each requirement, for showing to people."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlmodel import select

from gateways.chains.balance_sheet import MOST
from locales import N_
from models import Observation, Tally
from models.db.session import AsyncSession, any_of, joined
from services.core.answer import Answer
from services.holdings import stored_balances
from services.holdings.evaluate import Reading
from services.holdings.fetch_plan import ANY, addresses_on
from services.holdings.wallet_shares import Delegated, WalletShare, conclude_for, counting, doubts_of, vaults_for
from services.rules.expression import Requirement
from services.rules.types.view_call import ViewCall

READINGS = ("surveyed", "observation", "tally", "token_trail")
"""The tables with what was read about wallets, by their addresses; snapshots come first.

A snapshot without its balances would say that the wallet holds nothing.
"""
BALANCE = "balance"
"""The scope of a requirement that counts all tokens of a contract."""


@dataclass(frozen=True, slots=True)
class LastKnown:
    """One wallet's last known holdings for one requirement."""

    part: WalletShare
    block: int
    source: str
    observed_at: datetime


@dataclass(frozen=True, slots=True)
class Remembered:
    """What is known about one requirement and one member's wallets; `oldest` is the least recent reading."""

    answer: Answer
    held: int | None
    holding: tuple[WalletShare, ...] = ()
    """The wallets and vaults that hold something; all that count, if none does."""
    oldest: LastKnown | None = None
    reason: str | None = None


Memory = Mapping[tuple[str, str, str, str], LastKnown]
"""Chain, contract, wallet and scope → the last reading."""


def scope_of(leaf: Requirement) -> str:
    """Return what a requirement counts, apart from the number it needs: equal scopes count the same."""
    if leaf.kind.source in {"balances", "coins"}:
        return BALANCE
    if leaf.kind.source == "anything":
        return ANY
    if isinstance(leaf.details, ViewCall):
        return f"{leaf.type}:{_digest(leaf.details.counted)}"
    what = [text.strip().casefold() for trait in leaf.traits for text in trait] if leaf.kind.names_trait else []
    if leaf.kind.names_ids:
        what += sorted(leaf.token_ids)
    return f"{leaf.type}:{_digest(what)}"


def _digest(what: Sequence[str]) -> str:
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()[:32]


async def load(db: AsyncSession, leaves: Iterable[Requirement], addresses: Sequence[str]) -> Memory:
    """Return the last readings of these wallets for these requirements."""
    contracts = sorted({leaf.contract for leaf in leaves})
    memory: dict[tuple[str, str, str, str], LastKnown] = {}
    balances = await db.exec(
        select(Observation).where(any_of(Observation.contract, contracts), any_of(Observation.address, addresses))
    )
    for row in balances.all():
        part = WalletShare(row.address, int(row.amount))
        memory[row.chain, row.contract, row.address, BALANCE] = LastKnown(part, row.block, row.source, row.observed_at)
    for (chain, contract, address), one in (await stored_balances.newest(db, contracts, addresses)).items():
        key = (chain, contract, address, BALANCE)
        before = memory.get(key)
        if before is None or before.block <= one.block:
            # By the snapshot, the amount has not changed since, or the wallet never held any.
            part = before.part if before is not None else WalletShare(address, 0)
            memory[key] = LastKnown(part, one.block, one.source, one.observed_at)
    tokens = await db.exec(select(Tally).where(any_of(Tally.contract, contracts), any_of(Tally.address, addresses)))
    for row in tokens.all():
        key = (row.chain, row.contract, row.address, row.scope)
        if key not in memory or memory[key].block <= row.block:
            part = WalletShare(
                row.address, int(row.amount), (row.reason or N_("not complete")) if row.at_least else None
            )
            memory[key] = LastKnown(part, row.block, row.source, row.observed_at)
    return memory


def recall(
    leaf: Requirement, wallets: Iterable[tuple[str, str]], memory: Memory, delegated: Delegated | None = None
) -> Remembered:
    """Evaluate a requirement by the last readings, as if they were new answers."""
    addresses = addresses_on(leaf.chain, wallets)
    if not addresses:
        return Remembered(Answer.NO, 0, reason=N_("no wallet on this chain counts here"))
    asked = [WalletShare(address, 0) for address in addresses]
    for vault in vaults_for(leaf, delegated):
        mark = vault.mark if leaf.kind.source == "anything" else vault.cut(leaf.contract).mark
        asked.append(WalletShare(vault.address, 0, through=vault.through, mark=mark))
    seen = [one for part in asked if (one := _seen(leaf, part, memory)) is not None]
    if not seen:
        return Remembered(Answer.UNKNOWN, None, tuple(asked), reason=N_("not read yet"))
    own = [one.part for one in seen if not one.part.through]
    if len(seen) < len(asked):
        own.append(WalletShare("", 0, N_("not every wallet has been read yet")))
    of_vaults = (one.part for one in seen if one.part.through)
    parts = counting(leaf, own, (*of_vaults, *doubts_of(leaf, delegated)))
    answer, reason = conclude_for(leaf, parts)
    holding = tuple(part for part in parts if part.amount) or tuple(asked)
    oldest = min(seen, key=lambda one: one.observed_at)
    return Remembered(answer, sum(part.amount for part in parts), holding, oldest, reason)


def _seen(leaf: Requirement, asked: WalletShare, memory: Memory) -> LastKnown | None:
    found = memory.get((leaf.chain, leaf.contract, asked.address, scope_of(leaf) + asked.mark))
    if found is None:
        return None
    return replace(found, part=replace(asked, amount=found.part.amount, reason=found.part.reason))


async def remember(db: AsyncSession, readings: Iterable[Reading]) -> None:
    """Store the amounts that were read token by token.

    A complete reading is replaced only by a newer one that is complete, or that shows more.
    """
    rows: dict[tuple[str, str, str, str], tuple[WalletShare, Reading]] = {}
    for reading in readings:
        leaf = reading.requirement
        if leaf.kind.chainless:
            continue  # stored in tables of its own
        scope = scope_of(leaf)
        for part in reading.parts:
            if part.address and (part.mark or not reading.by_balance):  # others have no wallet, or are in snapshots
                rows[leaf.chain, leaf.contract, part.address, scope + part.mark] = part, reading
    if not rows:
        return
    # A fixed order, so that two workers with the same wallets wait for each other instead of deadlocking.
    keys = sorted(rows)
    said = [rows[key] for key in keys]
    db.later(
        """
        INSERT INTO tally (chain, contract, address, scope, amount, at_least, reason, block, source, observed_at)
        SELECT chain, contract, address, scope, amount, reason IS NOT NULL, reason, block, source, observed_at
        FROM unnest(
            string_to_array(:chains, ','), string_to_array(:contracts, ','), string_to_array(:addresses, ','),
            CAST(:scopes AS text[]), CAST(string_to_array(:amounts, ',') AS numeric[]), CAST(:reasons AS text[]),
            CAST(string_to_array(:blocks, ',') AS bigint[]), CAST(:sources AS text[]),
            CAST(string_to_array(:moments, ',') AS timestamptz[])
        ) AS s (chain, contract, address, scope, amount, reason, block, source, observed_at)
        ON CONFLICT (chain, contract, address, scope) DO UPDATE SET amount = EXCLUDED.amount,
            at_least = EXCLUDED.at_least, reason = EXCLUDED.reason, block = EXCLUDED.block, source = EXCLUDED.source,
            observed_at = EXCLUDED.observed_at
            WHERE tally.block <= EXCLUDED.block
            AND (tally.at_least OR NOT EXCLUDED.at_least OR tally.amount < EXCLUDED.amount)
        """,
        {
            "chains": joined(key[0] for key in keys), "contracts": joined(key[1] for key in keys),
            "addresses": joined(key[2] for key in keys), "scopes": [key[3] for key in keys],
            "amounts": joined(min(part.amount, MOST) for part, _ in said), "reasons": [part.reason for part, _ in said],
            "blocks": joined(reading.block for _, reading in said), "sources": [reading.source for _, reading in said],
            "moments": joined(reading.observed_at for _, reading in said),
        },
    )  # fmt: skip


async def forget_removed(db: AsyncSession, addresses: Sequence[str]) -> None:
    """Delete the readings of those of these wallets that nobody has any more."""
    nobodys = """
        SELECT a.address FROM unnest(string_to_array(:addresses, ',')) AS a (address)
        WHERE NOT EXISTS (SELECT FROM wallet w WHERE w.address = a.address)
    """
    (rows,) = await db.together((nobodys, {"addresses": joined(addresses)}))
    if gone := joined(address for (address,) in rows):
        for table in READINGS:
            db.later(f"DELETE FROM {table} WHERE address = ANY(string_to_array(:gone, ','))", {"gone": gone})
