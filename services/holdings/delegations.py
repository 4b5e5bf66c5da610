"""Delegations to members' wallets: read from each chain's registry, and stored with their age."""

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from sqlalchemy import delete, tuple_
from sqlmodel import col, select

import models
from gateways import Gateways
from gateways.chains.catalogue import CHAINS
from gateways.chains.node_providers import origin, other_nodes
from gateways.chains.read_point import ReadPoint
from gateways.evm.delegate_registry import NOT_IN_TIME, DelegationSheet, RegisteredDelegation
from gateways.transport.chunks import chunks
from gateways.transport.errors import ProviderError
from locales import N_
from locales.stored_texts import storable, within
from models.db.row import upsert
from models.db.session import AsyncSession
from services.core import queue
from services.holdings import confirmation
from services.holdings.wallet_shares import KnownVaults, Said
from services.rules.expression import requirements
from services.rules.rule_terms import RuleTerms

FRESH = timedelta(minutes=10)
"""How long an answer of the registry is reused; members waiting at a screen get a new one."""
BEGAN = time.monotonic()
"""When this process began (monotonic). Earlier answers are not reused: they name their node by its place in the
settings, and another node may have that place by now."""
MOST_KEPT = 200
"""Maximum delegations to one wallet on one chain, because anybody can give any number to anybody. The registry lists
the oldest first."""
PAIRS_A_STATEMENT = 4_000
"""Maximum pairs of a chain and a wallet that one statement names; it takes at most 65,535 parameters."""
AGE_KEPT = timedelta(days=1)
"""How long a delegation that a read did not name keeps its place among the others, should a later read name it."""

DelegateKey = tuple[str, str]
"""A chain and a delegate."""
DelegationKey = tuple[str, str, str]
"""A vault, a contract and a token id."""
_KEYS = ("chain", "delegate", "vault", "contract", "token_id")
_OF_A_READ = ("block", "endpoint", "read_at", "more", "fault")
# With a parameter for each column instead of each value: SQLAlchemy would compile thousands of rows for a second.
_STORE_READS = """
INSERT INTO delegation_read AS r (chain, delegate, block, endpoint, read_at, more, fault)
SELECT * FROM unnest(
    CAST(:chains AS text[]), CAST(:delegates AS text[]), CAST(:block AS bigint[]), CAST(:endpoint AS integer[]),
    CAST(:read_at AS timestamptz[]), CAST(:more AS boolean[]), CAST(:fault AS text[])
)
ON CONFLICT (chain, delegate) DO UPDATE SET
    block = CASE WHEN excluded.fault IS NULL THEN excluded.block ELSE r.block END,
    endpoint = CASE WHEN excluded.fault IS NULL THEN excluded.endpoint ELSE r.endpoint END,
    read_at = CASE WHEN excluded.fault IS NULL THEN excluded.read_at ELSE r.read_at END,
    more = CASE WHEN excluded.fault IS NULL THEN excluded.more ELSE r.more END,
    fault = excluded.fault
WHERE excluded.fault IS NOT NULL OR r.block <= excluded.block
RETURNING r.chain, r.delegate
"""

Row = TypeVar("Row", models.Delegation, models.EndedDelegation)


@dataclass(frozen=True, slots=True)
class WantedDelegations:
    """The delegates on one chain whose delegations must be read, and the earliest block for that."""

    delegates: tuple[str, ...]
    not_before: int = 0


@dataclass(frozen=True, slots=True)
class Fetched:
    """The registry's answer about these wallets, or the reason why there is none.

    If only time is missing, `wait` is the seconds.
    """

    chain: str
    delegates: tuple[str, ...]
    sheet: DelegationSheet | str
    wait: float | None = None


def chains_of(rules: Iterable[RuleTerms]) -> frozenset[str]:
    """Return the chains with a registry on which rules count delegated tokens."""
    return frozenset(chain for chain in _counted(rules) if CHAINS[chain].delegates is not None)


def chains_without(rules: Iterable[RuleTerms]) -> frozenset[str]:
    """Return the chains without a registry on which rules count delegated tokens; they may have had one before."""
    return frozenset(chain for chain in _counted(rules) if CHAINS[chain].delegates is None)


def _counted(rules: Iterable[RuleTerms]) -> Iterator[str]:
    for rule in rules:
        if rule.decides and rule.delegated:
            for leaf in requirements(rule.expression):
                if leaf.chain in CHAINS and CHAINS[leaf.chain].family == "evm":
                    yield leaf.chain


async def stale(
    db: AsyncSession, chains: Mapping[int, frozenset[str]], claims: Iterable[queue.Claim]
) -> dict[str, WantedDelegations]:
    """Return these members' wallets whose delegations are too old to decide by, by chain."""
    asked = sorted(
        (chain, claim.discord_id, claim.priority >= queue.WAITING)
        for claim in claims
        for chain in chains.get(claim.server_id, ())
    )
    if not asked:
        return {}
    result = await db.execute(
        """
        SELECT DISTINCT a.chain, w.address, COALESCE(d.block, 0)
        FROM unnest(CAST(:chains AS text[]), CAST(:people AS text[]), CAST(:urgent AS boolean[]))
            AS a (chain, discord_id, urgent)
        JOIN "user" u ON u.discord_id = a.discord_id
        JOIN wallet w ON w.user_id = u.id AND w.family = 'evm' AND w.chain IN ('', a.chain)
        LEFT JOIN delegation_read d ON d.chain = a.chain AND d.delegate = w.address
        WHERE a.urgent OR d.read_at IS NULL OR d.fault IS NOT NULL OR d.read_at < now() - :fresh
        ORDER BY 1, 2
        """,
        {
            "chains": [chain for chain, _, _ in asked], "people": [who for _, who, _ in asked],
            "urgent": [urgent for _, _, urgent in asked],
            "fresh": min(FRESH, timedelta(seconds=time.monotonic() - BEGAN)),
        },
    )  # fmt: skip
    found: dict[str, tuple[list[str], int]] = {}
    for chain, address, block in result.all():
        delegates, newest = found.get(str(chain), ([], 0))
        found[str(chain)] = [*delegates, str(address)], max(newest, int(block))
    return {chain: WantedDelegations(tuple(delegates), newest) for chain, (delegates, newest) in found.items()}


async def read(outside: Gateways, wanted: Mapping[str, WantedDelegations]) -> list[Fetched]:
    """Ask each chain's registry; an error of one chain affects only its own answers."""

    async def ask(chain: str, want: WantedDelegations) -> Fetched:
        said = await _attempt(outside, chain, want.delegates, ReadPoint(None, want.not_before))
        return Fetched(chain, want.delegates, said)

    return list(await asyncio.gather(*(ask(chain, want) for chain, want in wanted.items())))


async def read_again(outside: Gateways, known: Mapping[DelegateKey, KnownVaults]) -> list[Fetched]:
    """Read a second time, at a settled block: from another node if one answers, otherwise from the same one.

    The same node, or another one of its provider, confirms only an answer that was given at that block or before, and
    minutes before if there are others.
    """
    groups: dict[tuple[str, int], list[str]] = {}
    for (chain, delegate), before in sorted(known.items()):
        groups.setdefault((chain, before.endpoint), []).append(delegate)

    async def ask(chain: str, endpoint: int, delegates: list[str]) -> Fetched:
        newest = max(known[chain, delegate].block for delegate in delegates)
        others = other_nodes(chain, endpoint, outside.chains.endpoints(chain))
        said: DelegationSheet | str = N_("no node is set")
        for node in others:
            told = await _attempt(outside, chain, delegates, ReadPoint(node, newest, settled=True))
            if _known_in(told) >= _known_in(said):
                said = told
            if not isinstance(told, str) and NOT_IN_TIME not in told.unsure.values():
                break
        # A stored answer can be of a node that the settings have no more.
        if isinstance(said, str) and endpoint < outside.chains.endpoints(chain):
            said = await _attempt(outside, chain, delegates, ReadPoint(endpoint, newest, settled=True))
        if not isinstance(said, str) and origin(chain, said.endpoint) == origin(chain, endpoint):
            several = any(origin(chain, node) != origin(chain, endpoint) for node in others)
            silent = confirmation.OTHERS_SILENT.total_seconds() / CHAINS[chain].block_seconds if several else 0
            if (missing := newest + silent - said.block) > 0:
                # Retry while the stored answer is still FRESH: a new answer would start the wait again.
                wait = min(missing * CHAINS[chain].block_seconds + 1.0, FRESH.total_seconds() / 2 + 5.0)
                return Fetched(chain, tuple(delegates), N_("waiting for a later block to confirm"), wait)
        return Fetched(chain, tuple(delegates), said)

    return list(await asyncio.gather(*(ask(*group, delegates) for group, delegates in groups.items())))


def _known_in(said: DelegationSheet | str) -> int:
    """Return for how many delegates an answer names the vaults; -1 for an error."""
    return -1 if isinstance(said, str) else len(said.found)


def disagreements(known: Mapping[DelegateKey, KnownVaults], again: Iterable[Fetched]) -> dict[DelegateKey, str]:
    """Return the wallets about which the second read differs or says nothing, with the reason."""
    found: dict[DelegateKey, str] = {}
    for fetched in again:
        for delegate in fetched.delegates:
            pair = fetched.chain, delegate
            if isinstance(fetched.sheet, str):
                found[pair] = unread(fetched.sheet)
            elif (reason := fetched.sheet.unsure.get(delegate)) is not None:
                found[pair] = unread(reason)
            elif said_of(fetched.sheet.found[delegate]) != known[pair].said:
                found[pair] = N_("two readings of the delegations disagree")
    return found


def said_of(listed: Sequence[RegisteredDelegation]) -> Said:
    """Return the registry's delegations in the form that is stored; of two on the same thing, the larger counts."""
    best: dict[tuple[str, str, str], tuple[int | None, bool]] = {}
    for one in listed[:MOST_KEPT]:
        key = one.vault, one.contract, one.token_id
        amount, single = best.get(key, (None, False))
        if one.amount is not None:
            amount = max(amount or 0, one.amount)
        best[key] = amount, single or (one.kind == "token" and one.amount is None)
    return frozenset((*key, amount, single) for key, (amount, single) in best.items())


async def doubt(db: AsyncSession, chain: str, changes: Iterable[tuple[str, int]]) -> None:
    """Record that the registry changed for these wallets (`(delegate, block)`): stored answers are outdated.

    The next reconcile reads them from a node that is not behind that block.
    """
    newest: dict[str, int] = {}
    for delegate, block in changes:
        newest[delegate] = max(block, newest.get(delegate, 0))
    if newest:
        await db.execute(
            """
            UPDATE delegation_read d SET read_at = to_timestamp(0), block = GREATEST(d.block, c.block)
            FROM (SELECT r.delegate, c.block FROM delegation_read r
                  JOIN unnest(CAST(:delegates AS text[]), CAST(:blocks AS bigint[])) AS c (delegate, block)
                  ON r.chain = :chain AND r.delegate = c.delegate ORDER BY r.delegate FOR UPDATE OF r) c
            WHERE d.chain = :chain AND d.delegate = c.delegate
            """,
            {"chain": chain, "delegates": list(newest), "blocks": list(newest.values())},
        )


async def _attempt(outside: Gateways, chain: str, delegates: Sequence[str], at: ReadPoint) -> DelegationSheet | str:
    try:
        return await outside.delegations.incoming(chain, delegates, at=at)
    except ProviderError as fault:
        return str(fault)


def unread(reason: str) -> str:
    """Return the reason to store for delegations that could not be read."""
    return storable("delegations: {reason}", reason=within(reason))


async def remember(db: AsyncSession, fetched: Iterable[Fetched]) -> None:
    """Store the registries' answers. A failed or older read overwrites nothing; only its error is recorded.

    Queues the other members with a claim on a vault whose delegations changed. Nothing stays of a wallet that nobody
    has any more: its owner may have removed it, or deleted their data, while the registry was read.
    """
    reads, said = dict[DelegateKey, dict[str, object]](), dict[DelegateKey, Said]()
    moment = models.now()
    for one in fetched:
        sheet = one.sheet
        faults = dict.fromkeys(one.delegates, sheet) if isinstance(sheet, str) else sheet.unsure
        for delegate, reason in faults.items():
            reads[one.chain, delegate] = {
                "block": 0, "endpoint": 0, "read_at": None, "more": False, "fault": reason[:300]
            }  # fmt: skip
        if isinstance(sheet, str):
            continue
        for delegate, listed in sheet.found.items():
            said[one.chain, delegate] = said_of(listed)
            reads[one.chain, delegate] = {
                "block": sheet.block, "endpoint": sheet.endpoint, "read_at": moment, "more": len(listed) > MOST_KEPT,
                "fault": None,
            }  # fmt: skip
    accepted = await _accepted(db, reads)
    accepted = await _without_removed(db, reads, accepted)
    before = await said_before(db, accepted)
    moved: dict[str, set[str]] = {}
    for pair in accepted:
        if vaults := await _replace(db, pair, before.get(pair, frozenset()), said[pair]):
            moved.setdefault(pair[0], set()).update(vaults)
    if moved:
        # Last, and for all chains at once: the members may be locked by a reconcile that stores one of the chains.
        ours, vaults = set(accepted), set[str]().union(*moved.values())
        known = {delegate for _, delegate in accepted if all((chain, delegate) in ours for chain in moved)}
        await queue.mark_claimants(db, sorted(vaults), queue.SEEN, without=sorted(known))


async def _accepted(db: AsyncSession, reads: Mapping[DelegateKey, Mapping[str, object]]) -> list[DelegateKey]:
    """Store these last reads; return those that succeeded and are not older than the stored ones."""
    if not reads:
        return []
    # A fixed order, so that overlapping calls wait for each other instead of deadlocking.
    asked = sorted(reads)
    columns = {name: [reads[pair][name] for pair in asked] for name in _OF_A_READ}
    stored = await db.execute(_STORE_READS, {**_in_columns(asked), **columns})
    told = ((str(chain), str(delegate)) for chain, delegate in stored.all())
    return [pair for pair in told if reads[pair]["fault"] is None]


def _in_columns(pairs: Sequence[DelegateKey]) -> dict[str, list[str]]:
    return {"chains": [chain for chain, _ in pairs], "delegates": [delegate for _, delegate in pairs]}


async def _without_removed(
    db: AsyncSession, reads: Iterable[DelegateKey], accepted: Sequence[DelegateKey]
) -> list[DelegateKey]:
    """Delete what is stored of those of these wallets that nobody has; return the accepted ones that somebody has.

    It comes after the rows of the last reads were written, for which an erasure of these wallets waits, or we for it.
    """
    asked = sorted(reads)
    if not asked:
        return []
    found = await db.execute(_REMOVED, _in_columns(asked))
    gone = {(str(chain), str(delegate)) for chain, delegate in found.all()}
    for table in (models.Delegation, models.EndedDelegation, models.DelegationRead) if gone else ():
        for some in chunks(sorted(gone), PAIRS_A_STATEMENT):
            await db.execute(delete(table).where(tuple_(col(table.chain), col(table.delegate)).in_(some)))
    return [pair for pair in accepted if pair not in gone]


_REMOVED = """
    SELECT a.chain, a.delegate
    FROM unnest(CAST(:chains AS text[]), CAST(:delegates AS text[])) AS a (chain, delegate)
    WHERE NOT EXISTS (
        SELECT FROM wallet w WHERE w.family = 'evm' AND w.address = a.delegate AND w.chain IN ('', a.chain))
"""


async def _replace(db: AsyncSession, pair: DelegateKey, before: Said, said: Said) -> set[str]:
    """Replace the stored delegations of one wallet; return the vaults that changed."""
    moment = models.now()
    gone = {one[:3] for one in before} - {one[:3] for one in said}
    if gone:
        await _end(db, pair, gone, moment)
    new = said - before
    if new:
        ages = await _ages(db, pair, {one[:3] for one in new}, moment)
        rows = [
            {"chain": pair[0], "delegate": pair[1], "vault": vault, "contract": contract, "token_id": token_id,
             "amount": amount, "single": single, "first_seen_at": ages.get((vault, contract, token_id), moment)}
            for vault, contract, token_id, amount, single in sorted(new, key=lambda one: one[:3])
        ]  # fmt: skip
        await db.execute(upsert(models.Delegation, rows, _KEYS, ("amount", "single")))
    return {one[0] for one in before ^ said}


async def _end(db: AsyncSession, pair: DelegateKey, gone: Iterable[DelegationKey], moment: datetime) -> None:
    """Delete delegations that a read does not name, and keep their ages: that one read may be wrong."""
    rows = [
        {"chain": one.chain, "delegate": one.delegate, "vault": one.vault, "contract": one.contract,
         "token_id": one.token_id, "first_seen_at": one.first_seen_at, "ended_at": moment}
        for one in await _removed(db, models.Delegation, pair, gone)
    ]  # fmt: skip
    if rows:
        await db.execute(upsert(models.EndedDelegation, rows, _KEYS, ("first_seen_at", "ended_at")))


async def _ages(
    db: AsyncSession, pair: DelegateKey, named: Iterable[DelegationKey], moment: datetime
) -> dict[DelegationKey, datetime]:
    """Return since when we have known those of these delegations that were missing from recent reads."""
    return {
        (one.vault, one.contract, one.token_id): one.first_seen_at
        for one in await _removed(db, models.EndedDelegation, pair, named)
        if one.ended_at > moment - AGE_KEPT
    }


async def _removed(
    db: AsyncSession, table: type[Row], pair: DelegateKey, keys: Iterable[DelegationKey]
) -> Sequence[Row]:
    """Delete these delegations to one wallet from a table, and return their rows."""
    key = tuple_(col(table.vault), col(table.contract), col(table.token_id))
    here = tuple_(col(table.chain), col(table.delegate)) == pair
    gone = await db.exec(delete(table).where(here, key.in_(sorted(keys))).returning(table))
    return gone.scalars().all()


async def said_before(db: AsyncSession, pairs: Sequence[DelegateKey]) -> dict[DelegateKey, Said]:
    """Return the stored delegations of these wallets."""
    found: dict[DelegateKey, set[tuple[str, str, str, int | None, bool]]] = {}
    for some in chunks(pairs, PAIRS_A_STATEMENT):
        rows = await db.exec(
            select(models.Delegation).where(
                tuple_(col(models.Delegation.chain), col(models.Delegation.delegate)).in_(some)
            )
        )
        for row in rows.all():
            amount = None if row.amount is None else int(row.amount)
            said = row.vault, row.contract, row.token_id, amount, row.single
            found.setdefault((row.chain, row.delegate), set()).add(said)
    return {pair: frozenset(said) for pair, said in found.items()}
