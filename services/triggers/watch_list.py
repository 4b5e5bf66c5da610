"""What the followers watch: contracts in rules, and wallets of members under rules about any NFT or about coins."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from gateways.chains.balance_sheet import NATIVE
from gateways.chains.catalogue import CHAINS
from gateways.evm.transfer_logs import COINS, CONTRACTS, WALLETS
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

    Coins are watched by their transfers from and to certain wallets, the `holders`. `contracts` includes the delegation
    registry if a rule counts delegations. Two values are equal if their addresses are.
    """

    contracts: tuple[str, ...] = ()
    wallets: tuple[str, ...] = ()
    coins: tuple[str, ...] = ()
    holders: tuple[str, ...] = ()
    servers: Mapping[str, frozenset[int]] = field(default_factory=dict[str, frozenset[int]], compare=False)
    """Contract (or ANY) → the servers whose rules name it."""
    released: frozenset[tuple[str, str]] = field(default=frozenset(), compare=False)
    """Kind and address of the addresses released from quarantine, until their release is stored."""
    away: frozenset[tuple[str, str]] = field(default=frozenset(), compare=False)
    """Kind and address of the addresses in quarantine."""
    late: tuple[str, ...] = field(default=(), compare=False)
    """Wallets that may have existed for longer than they have been watched."""
    late_holders: tuple[str, ...] = field(default=(), compare=False)
    """The same among the holders of coins."""

    def asked(self, kind: str) -> bool:
        """Return whether any address of this kind is followed or in quarantine."""
        return bool(self.of(kind)) or any(one == kind for one, _ in self.away)

    def of(self, kind: str) -> tuple[str, ...]:
        """Return the addresses of this kind."""
        return {CONTRACTS: self.contracts, WALLETS: self.wallets, COINS: self.holders}[kind]

    def named_by(self, kind: str) -> Mapping[str, frozenset[int]]:
        """Return the servers that a transfer concerns, by contract; coin transfers concern no rule about any NFT."""
        return self.servers if kind != COINS else {coin: self.servers[coin] for coin in self.coins}

    def late_of(self, kind: str) -> tuple[str, ...]:
        """Return the wallets of this kind that may have existed for longer than they have been watched."""
        return {WALLETS: self.late, COINS: self.late_holders}.get(kind, ())


async def named(db: AsyncSession) -> Servers:
    """Return the contracts in rules of servers with the bot, paused rules included, since they may be resumed.

    Excludes rules paused for exceeding the limits.
    """
    (rows,) = await db.together(_RULES)
    return _named(rows).servers


_RULES: Question = (
    "SELECT r.server_id, CAST(r.expression AS text), r.delegated FROM rule r JOIN server s ON s.id = r.server_id "
    f"WHERE r.deleted_at IS NULL AND s.bot_invited AND r.pause_cause IS DISTINCT FROM '{TOO_MANY}'",
    {},
)

_STAMPS: Question = (
    """
    SELECT (SELECT COALESCE(string_agg(CAST(id AS text), ',' ORDER BY id), '') FROM watched_change
            WHERE what = 'rule'),
           (SELECT COALESCE(string_agg(CAST(id AS text), ',' ORDER BY id), '') FROM watched_change
            WHERE what = 'server'),
           (SELECT COALESCE(string_agg(CAST(id AS text), ',' ORDER BY id), '') FROM watched_change
            WHERE what = 'wallet') || ' ' || COALESCE((SELECT max(id) FROM wallet), 0),
           (SELECT COALESCE(string_agg(CAST(id AS text), ',' ORDER BY id), '') FROM watched_change
            WHERE what = 'delegation')
    """,
    {},
)
"""The query for stamps that change when rules, servers, wallets or vaults do.

Triggers add a row to `watched_change` in each transaction with a change, and delete earlier ones, so however many
servers and wallets there are, few rows are read. A change that was not visible is shown by its own row, or by a newer
one that was not visible either.
"""

_QUARANTINE: Question = ("SELECT chain, kind, address, until > now() FROM quarantine WHERE ended_at IS NULL", {})


Watching = tuple[str, str]
"""WALLETS or COINS, and a chain."""


@dataclass(frozen=True, slots=True)
class _Named:
    """What rules name: the servers by chain and contract, and the contracts whose own logs are followed, by chain.

    `coins` are followed by the wallets of members in their servers. `asking` has the servers whose members' wallets are
    followed, each with whether vaults count too.
    """

    servers: Servers
    followed: Mapping[str, frozenset[str]]
    coins: Mapping[str, frozenset[str]]
    asking: Mapping[Watching, Mapping[int, bool]]


_NOTHING = _Named({}, {}, {}, {})


def _named(rows: Sequence[Sequence[object]]) -> _Named:
    servers: dict[str, dict[str, set[int]]] = {}
    followed: dict[str, set[str]] = {}
    coins: dict[str, set[str]] = {}
    asking: dict[Watching, dict[int, bool]] = {}
    for server_id, expression, delegated in rows:
        server = int(str(server_id))
        for chain, contract, is_coin in _places.of(str(expression)):
            contracts = servers.setdefault(chain, {})
            contracts.setdefault(contract, set()).add(server)
            if delegated and (registry := registry_on(chain)) is not None:
                contracts.setdefault(registry, set()).add(server)
                followed.setdefault(chain, set()).add(registry)
            if is_coin and contract == NATIVE:
                continue  # transfers of a chain's own coin have no logs
            if is_coin or contract == ANY:
                wallets = asking.setdefault((COINS if is_coin else WALLETS, chain), {})
                wallets[server] = wallets.get(server, False) or bool(delegated)
            if contract != ANY:
                (coins if is_coin else followed).setdefault(chain, set()).add(contract)
    return _Named(
        {chain: {contract: frozenset(ids) for contract, ids in named.items()} for chain, named in servers.items()},
        {chain: frozenset(contracts) for chain, contracts in followed.items()},
        {chain: frozenset(contracts) for chain, contracts in coins.items()},
        asking,
    )


def _wallets(chain: str, asking: Mapping[int, bool]) -> Question:
    """Return the query for these servers' EVM wallets, with their vaults if a rule counts delegations.

    Each has the id of its newest row; NULL if it is only a vault.
    """
    statement = """
        WITH asking AS (
            SELECT * FROM unnest(CAST(:servers AS integer[]), CAST(:delegated AS boolean[])) AS a (id, delegated)),
        counted AS MATERIALIZED (
            SELECT w.address, bool_or(a.delegated) AS delegated, max(w.id) AS id FROM asking a
            JOIN member m ON m.server_id = a.id AND m.left_at IS NULL
            JOIN "user" u ON u.discord_id = m.discord_id
            JOIN wallet w ON w.user_id = u.id AND w.family = 'evm' AND w.chain IN ('', CAST(:chain AS text))
            GROUP BY w.address)
        SELECT address, max(id) FROM (
            SELECT address, id FROM counted
            UNION ALL SELECT d.vault, NULL FROM delegation d JOIN counted c ON c.address = d.delegate AND c.delegated
            WHERE d.chain = :chain) every GROUP BY address
    """
    return statement, {"servers": list(asking), "delegated": list(asking.values()), "chain": chain}


def _newest_wallet(stamp: object) -> int:
    """Return the id of the newest wallet in the stamp of wallets; 0 if there is none."""
    return int(str(stamp).partition(" ")[2] or 0)


class WatchList:
    """The watch list of one process, read again only when a stamp has changed."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._stamps: tuple[object, ...] = ()
        self._named: _Named = _NOTHING
        self._wallets: dict[Watching, tuple[str, ...]] = {}
        self._late: dict[Watching, set[str]] = {}
        self._wallets_for: tuple[object, ...] = ()
        """What the wallets depended on when they were read: stamps of servers, wallets and vaults, and what asks."""
        self._again_at = 0.0
        """Loop time at which wallets are read again in any case."""

    async def read(self, db: AsyncSession) -> dict[str, Watched]:
        """Return what is watched now, by chain."""
        # One at a time: an older answer must not replace a newer one.
        async with self._lock:
            stamps, quarantined = await db.together(_STAMPS, _QUARANTINE)
            if stamps[0] != self._stamps:
                (rows,) = await db.together(_RULES)
                self._named = _named(rows)
                self._stamps = stamps[0]
            await self._read_wallets(db)
            held = {(str(chain), str(kind), str(address)): bool(lasts) for chain, kind, address, lasts in quarantined}
            return {chain: self._watched(chain, held) for chain in self._named.servers}

    def marked(self, chain: str, kind: str, wallets: Collection[str]) -> None:
        """Record that these wallets' owners are queued, so that the wallets no longer count as late."""
        self._late.get((kind, chain), set[str]()).difference_update(wallets)

    async def _read_wallets(self, db: AsyncSession) -> None:
        clock = asyncio.get_running_loop()
        began, before = clock.time(), self._wallets_for
        depends = (*self._stamps[1:], self._named.asking)
        if depends == before and began < self._again_at:
            return
        asking = {key: servers for key, servers in self._named.asking.items() if CHAINS[key[1]].family == "evm"}
        found = (
            await db.together(*(_wallets(chain, servers) for (_, chain), servers in asking.items())) if asking else []
        )
        wallets = {
            key: tuple(sorted(str(address) for address, _ in rows)) for key, rows in zip(asking, found, strict=True)
        }
        if before and (before[0], before[-1]) == (depends[0], depends[-1]):
            newest = _newest_wallet(before[1])
            # Those that no stamp shows may have existed since the last read. A stamp that has changed shows only the
            # wallets proved since, not that the owner of an older one joined a server meanwhile.
            for key, rows in zip(asking, found, strict=True):
                if wallets[key] != self._wallets.get(key):
                    known = set(self._wallets.get(key, ()))
                    older = {
                        str(address)
                        for address, row in rows
                        if depends == before or (row is not None and int(str(row)) <= newest)
                    }
                    self._late.setdefault(key, set()).update(older - known)
        self._wallets = {
            key: self._wallets[key] if addresses == self._wallets.get(key) else addresses
            for key, addresses in wallets.items()
        }
        self._wallets_for = depends
        self._again_at = began + max(READ_AGAIN_SECONDS, SHARE_OF_TIME * (clock.time() - began))

    def _watched(self, chain: str, held: Mapping[tuple[str, str, str], bool]) -> Watched:
        away = {(kind, address) for (where, kind, address), lasts in held.items() if where == chain and lasts}
        ended = {(kind, address) for (where, kind, address), lasts in held.items() if where == chain and not lasts}
        return Watched(
            contracts=_without(sorted(self._named.followed.get(chain, ())), CONTRACTS, away),
            wallets=_without(self._wallets.get((WALLETS, chain), ()), WALLETS, away),
            coins=tuple(sorted(self._named.coins.get(chain, ()))),
            holders=_without(self._wallets.get((COINS, chain), ()), COINS, away),
            servers=self._named.servers[chain],
            released=frozenset(ended),
            away=frozenset(away),
            late=tuple(sorted(self._late.get((WALLETS, chain), ()))),
            late_holders=tuple(sorted(self._late.get((COINS, chain), ()))),
        )


def _without(addresses: Sequence[str], kind: str, away: Collection[tuple[str, str]]) -> tuple[str, ...]:
    if not away:
        return tuple(addresses)
    return tuple(address for address in addresses if (kind, address) not in away)
