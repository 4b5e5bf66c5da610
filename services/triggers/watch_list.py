"""What the followers watch: contracts in rules, and wallets of members under rules about any NFT."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from gateways.chains.catalogue import CHAINS
from gateways.evm.transfer_logs import CONTRACTS, WALLETS
from models.db.session import AsyncSession, Question
from services.rules.pausing import TOO_MANY
from services.triggers.chain_cursor import ANY, registry_on
from services.triggers.contract_index import PlacesByExpression

READ_AGAIN_SECONDS = 60.0
"""Longest interval between reads of the wallets: members join and leave."""
SHARE_OF_TIME = 50
"""Minimum interval between reads of a list, as a multiple of the time that a read takes."""

_places = PlacesByExpression()

Servers = Mapping[str, Mapping[str, frozenset[int]]]
"""Chain → contract (or ANY) → the servers whose rules name it."""


@dataclass(frozen=True, slots=True)
class Watched:
    """What is watched on one chain: collections by their contracts, and wallets if any token counts.

    Includes the delegation registry if a rule counts delegations. Two are equal if their addresses are.
    """

    contracts: tuple[str, ...] = ()
    wallets: tuple[str, ...] = ()
    servers: Mapping[str, frozenset[int]] = field(default_factory=dict[str, frozenset[int]], compare=False)
    """Contract (or ANY) → the servers whose rules name it."""
    released: frozenset[tuple[str, str]] = field(default=frozenset(), compare=False)
    """Kind and address of those released from quarantine, until that is stored."""
    away: frozenset[tuple[str, str]] = field(default=frozenset(), compare=False)
    """Kind and address of those in quarantine."""
    late: tuple[str, ...] = field(default=(), compare=False)
    """Wallets that may have existed for longer than they have been watched."""

    def asked(self, kind: str) -> bool:
        """Return whether any address of this kind is followed or in quarantine."""
        return bool(self.of(kind)) or any(one == kind for one, _ in self.away)

    def of(self, kind: str) -> tuple[str, ...]:
        """Return the addresses of this kind."""
        return self.contracts if kind == CONTRACTS else self.wallets


async def named(db: AsyncSession) -> Servers:
    """Return the contracts in rules of servers with the bot, paused rules included, since they may be resumed.

    Excludes rules paused for exceeding the limits.
    """
    (rows,) = await db.together(_RULES)
    return _named(rows)[0]


_RULES: Question = (
    "SELECT r.server_id, CAST(r.expression AS text), r.delegated FROM rule r JOIN server s ON s.id = r.server_id "
    f"WHERE r.deleted_at IS NULL AND s.bot_invited AND r.pause_cause IS DISTINCT FROM '{TOO_MANY}'",
    {},
)

_STAMPS: Question = (
    """
    SELECT (SELECT concat_ws(' ', count(*), sum(CAST(CAST(xmin AS text) AS bigint))) FROM rule),
           (SELECT concat_ws(' ', count(*), sum(hashint4(id))) FROM server WHERE bot_invited),
           (SELECT concat_ws(' ', count(*), max(id)) FROM wallet),
           (SELECT count(*) FROM delegation)
    """,
    {},
)
"""A stamp that changes when rules, servers, wallets or vaults do; far cheaper to read than these."""

_QUARANTINE: Question = ("SELECT chain, kind, address, until > now() FROM quarantine WHERE ended_at IS NULL", {})


def _named(rows: Sequence[Sequence[object]]) -> tuple[Servers, dict[str, dict[int, bool]]]:
    """Return the servers by chain and contract; and by chain the servers with a rule about any NFT.

    The latter map to whether that rule counts vaults.
    """
    servers: dict[str, dict[str, set[int]]] = {}
    any_nft: dict[str, dict[int, bool]] = {}
    for server_id, expression, delegated in rows:
        server = int(str(server_id))
        for chain, contract in _places.of(str(expression)):
            contracts = servers.setdefault(chain, {})
            contracts.setdefault(contract, set()).add(server)
            if delegated and (registry := registry_on(chain)) is not None:
                contracts.setdefault(registry, set()).add(server)
            if contract == ANY:
                asking = any_nft.setdefault(chain, {})
                asking[server] = asking.get(server, False) or bool(delegated)
    found = {
        chain: {contract: frozenset(ids) for contract, ids in contracts.items()} for chain, contracts in servers.items()
    }
    return found, any_nft


def _wallets(chain: str, asking: Mapping[int, bool]) -> Question:
    """Return the query for these servers' EVM wallets, with their vaults if a rule counts delegations."""
    statement = """
        WITH asking AS (
            SELECT * FROM unnest(CAST(:servers AS integer[]), CAST(:delegated AS boolean[])) AS a (id, delegated)),
        counted AS MATERIALIZED (
            SELECT w.address, bool_or(a.delegated) AS delegated FROM asking a
            JOIN member m ON m.server_id = a.id AND m.left_at IS NULL
            JOIN "user" u ON u.discord_id = m.discord_id
            JOIN wallet w ON w.user_id = u.id AND w.family = 'evm' GROUP BY w.address)
        SELECT address FROM counted
        UNION SELECT d.vault FROM delegation d JOIN counted c ON c.address = d.delegate AND c.delegated
        WHERE d.chain = :chain
    """
    return statement, {"servers": list(asking), "delegated": list(asking.values()), "chain": chain}


class WatchList:
    """The watch list of one process, read again only when a stamp has changed."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._stamps: tuple[object, ...] = ()
        self._servers: Servers = {}
        self._any: dict[str, dict[int, bool]] = {}
        self._wallets: dict[str, tuple[str, ...]] = {}
        self._late: dict[str, set[str]] = {}
        self._wallets_for: object = None
        """What the wallets depended on when they were read."""
        self._again_at = 0.0
        """Loop time at which wallets are read again in any case."""

    async def read(self, db: AsyncSession) -> dict[str, Watched]:
        """Return what is watched now, by chain."""
        # One at a time: an older answer must not replace a newer one.
        async with self._lock:
            stamps, quarantined = await db.together(_STAMPS, _QUARANTINE)
            if stamps[0] != self._stamps:
                (rows,) = await db.together(_RULES)
                self._servers, self._any = _named(rows)
                self._stamps = stamps[0]
            await self._read_wallets(db)
            held = {(str(chain), str(kind), str(address)): bool(lasts) for chain, kind, address, lasts in quarantined}
            return {chain: self._watched(chain, contracts, held) for chain, contracts in self._servers.items()}

    def marked(self, chain: str, wallets: Collection[str]) -> None:
        """Record that these wallets' owners are queued, so that the wallets no longer count as late."""
        self._late.get(chain, set[str]()).difference_update(wallets)

    async def _read_wallets(self, db: AsyncSession) -> None:
        clock = asyncio.get_running_loop()
        began, depends = clock.time(), (self._stamps[1:], self._any)
        if depends == self._wallets_for and began < self._again_at:
            return
        asking = {chain: servers for chain, servers in self._any.items() if CHAINS[chain].family == "evm"}
        found = await db.together(*(_wallets(chain, servers) for chain, servers in asking.items())) if asking else []
        wallets = {
            chain: tuple(sorted(str(address) for (address,) in rows)) for chain, rows in zip(asking, found, strict=True)
        }
        if depends == self._wallets_for:
            # No stamp showed them: they may have existed since the last read.
            for chain, addresses in wallets.items():
                if addresses != self._wallets.get(chain):
                    more = set(addresses) - set(self._wallets.get(chain, ()))
                    self._late.setdefault(chain, set()).update(more)
        self._wallets = {
            chain: self._wallets[chain] if addresses == self._wallets.get(chain) else addresses
            for chain, addresses in wallets.items()
        }
        self._wallets_for = depends
        self._again_at = began + max(READ_AGAIN_SECONDS, SHARE_OF_TIME * (clock.time() - began))

    def _watched(
        self, chain: str, contracts: Mapping[str, frozenset[int]], held: Mapping[tuple[str, str, str], bool]
    ) -> Watched:
        away = {(kind, address) for (where, kind, address), lasts in held.items() if where == chain and lasts}
        ended = {(kind, address) for (where, kind, address), lasts in held.items() if where == chain and not lasts}
        return Watched(
            _without(sorted(contracts.keys() - {ANY}), CONTRACTS, away),
            _without(self._wallets.get(chain, ()), WALLETS, away),
            contracts,
            frozenset(ended),
            frozenset(away),
            tuple(sorted(self._late.get(chain, ()))),
        )


def _without(addresses: Sequence[str], kind: str, away: Collection[tuple[str, str]]) -> tuple[str, ...]:
    if not away:
        return tuple(addresses)
    return tuple(address for address in addresses if (kind, address) not in away)
