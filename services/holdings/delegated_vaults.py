"""The delegated vaults that a server's members may count: each for its owner first, then for the oldest claim."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from sqlalchemy import tuple_
from sqlmodel import col, select

from gateways.transport.chunks import chunks
from locales import N_
from models import DelegationRead
from models.db.session import AsyncSession
from services.collections.standards import MANY, ONE_BY_ONE, ContractKey
from services.holdings.delegations import MOST_KEPT, DelegateKey, Fetched, said_before, said_of, unread
from services.holdings.fetch_plan import addresses_on
from services.holdings.wallet_shares import TOO_MANY, Delegated, KnownVaults, Said, Stake, Vault

MOST_CLAIMS = 100
"""Maximum claims on one vault; a vault with more is unknown to everybody."""

MOST_VAULTS = 500
"""Maximum vaults of one member that are read on one chain: each costs requests, to indexers too, and a member with a
hundred wallets could have twenty thousand."""

Who = tuple[int, str]
"""A server and one of its members."""
VaultPlace = tuple[int, str, str]
"""A server, a chain and a vault."""
Owned = Mapping[VaultPlace, str]
"""The member whose own wallet a vault is."""
Claims = Mapping[VaultPlace, Sequence[tuple[str, Stake]]]
"""Server, chain and vault → the claims in their order, each with its member."""


async def load(
    db: AsyncSession, chains: Mapping[int, frozenset[str]], wallets: Mapping[Who, Iterable[tuple[str, str]]]
) -> dict[Who, Delegated]:
    """Return the vaults that members may count besides their wallets (`(scope, address)`), on each server's chains."""
    asked = _delegates(chains, wallets)
    pairs = sorted({pair for found in asked.values() for pair in found})
    if not pairs:
        return {}
    reads, said = await _reads(db, pairs), await said_before(db, pairs)
    places = sorted({
        (who[0], pair[0], one[0]) for who, found in asked.items() for pair in found for one in said.get(pair, ())
    })  # fmt: skip
    claims = await _claims(db, [who for who, found in asked.items() if found], places)
    owned = await _owned(db, places)
    ahead = {who: set(_ahead(who, found, said, claims, owned)) for who, found in asked.items()}
    others = sorted(set[DelegateKey]().union(*ahead.values()).difference(pairs))
    if others:
        reads, said = reads | await _reads(db, others), said | await said_before(db, others)
    result: dict[Who, Delegated] = {}
    for who, found in asked.items():
        if found:
            vaults, cut = _that_fit(_vaults(who, found, said, claims, owned))
            known = {
                pair: KnownVaults(row.block, row.endpoint, said.get(pair, frozenset()))
                for pair in sorted(found | ahead[who])
                if (row := reads.get(pair)) is not None and row.read_at is not None
            }
            result[who] = Delegated(vaults, {**cut, **_doubts(who, found, reads, said, claims)}, known)
    return result


async def doubts_without_registry(
    db: AsyncSession, chains: Mapping[int, frozenset[str]], wallets: Mapping[Who, Iterable[tuple[str, str]]]
) -> dict[Who, dict[str, str]]:
    """Return, by member and chain, why they may count vaults on these chains, although none of them has a registry.

    A chain whose registry was removed from the settings still has the delegations that were read before.
    """
    asked = _delegates(chains, wallets)
    said = await said_before(db, sorted({pair for found in asked.values() for pair in found}))
    reason = unread(N_("delegate.xyz is no longer set for the chain"))
    return {
        who: {chain: reason for chain, _ in found & said.keys()} for who, found in asked.items() if found & said.keys()
    }


def _delegates(
    chains: Mapping[int, frozenset[str]], wallets: Mapping[Who, Iterable[tuple[str, str]]]
) -> dict[Who, set[DelegateKey]]:
    return {
        who: {(chain, address) for chain in chains.get(who[0], ()) for address in addresses_on(chain, mine)}
        for who, mine in wallets.items()
    }


def _vaults(
    who: Who, mine: set[DelegateKey], said: Mapping[DelegateKey, Said], claims: Claims, owned: Owned
) -> Iterator[Vault]:
    """Yield the vaults that the member may count at least in part, in a fixed order."""
    places = {(pair[0], one[0]) for pair in mine for one in said.get(pair, ())}
    for chain, address in sorted(places):
        # A proved wallet is the member's own, or another member's, who has precedence. `owned` lacks the wallets of
        # people who are not stored as members yet.
        if (chain, address) in mine or owned.get((who[0], chain, address)) is not None:
            continue
        listed = claims.get((who[0], chain, address), ())
        vault = Vault(chain, address, tuple(_as_seen_by(who[1], listed)))
        if len(listed) <= MOST_CLAIMS and any(stake.mine for stake in vault.stakes):
            yield vault


def _ahead(
    who: Who, mine: set[DelegateKey], said: Mapping[DelegateKey, Said], claims: Claims, owned: Owned
) -> Iterator[DelegateKey]:
    """Yield the wallets of others whose claims on the member's vaults come before a claim of the member.

    A vault with more than MOST_CLAIMS is unknown, so nobody loses a role by the older claims on it.
    """
    for chain, address in sorted({(pair[0], one[0]) for pair in mine for one in said.get(pair, ())}):
        place = who[0], chain, address
        listed = claims.get(place, ())
        if (chain, address) in mine or owned.get(place) is not None or len(listed) > MOST_CLAIMS:
            continue
        others = set[DelegateKey]()
        for whose, stake in listed:
            if whose == who[1]:
                yield from others
            else:
                others.add((chain, stake.delegate))


def _that_fit(vaults: Iterable[Vault]) -> tuple[tuple[Vault, ...], dict[str, str]]:
    """Return at most MOST_VAULTS of a member's vaults on each chain, and by chain why there may be more.

    The member's wallets take turns, so that the vaults of one do not displace those of another.
    """
    turns, on_chain = Counter[tuple[str, str]](), Counter[str]()
    in_turn: list[tuple[int, Vault]] = []
    for vault in vaults:
        turns[vault.chain, vault.through] += 1
        in_turn.append((turns[vault.chain, vault.through], vault))
    kept, cut = list[Vault](), dict[str, str]()
    for _, vault in sorted(in_turn, key=lambda one: one[0]):
        on_chain[vault.chain] += 1
        if on_chain[vault.chain] <= MOST_VAULTS:
            kept.append(vault)
        else:
            cut[vault.chain] = unread(TOO_MANY)
    return tuple(sorted(kept, key=lambda one: (one.chain, one.address))), cut


def uncontested(address: str, fetched: Iterable[Fetched], known: Mapping[ContractKey, str]) -> Delegated:
    """Return the vaults that a wallet could count if nobody else had a claim on them. `known` are contracts' standards.

    Members' claims are left out, because they would reveal which wallets members have proved.
    """
    vaults, doubts, read = list[Vault](), dict[str, str](), dict[DelegateKey, KnownVaults]()
    for one in fetched:
        reason = one.sheet if isinstance(one.sheet, str) else one.sheet.unsure.get(address)
        if isinstance(one.sheet, str) or reason is not None:
            doubts[one.chain] = unread(reason or "")
            continue
        listed = one.sheet.found[address]
        if len(listed) > MOST_KEPT:
            doubts[one.chain] = unread(TOO_MANY)
        said = said_of(listed)
        read[one.chain, address] = KnownVaults(one.sheet.block, one.sheet.endpoint, said)
        for vault, stakes in _lone_stakes(one.chain, address, said, known).items():
            vaults.append(Vault(one.chain, vault, tuple(_as_seen_by(address, stakes))))
    return Delegated(tuple(vaults), doubts, read)


def _lone_stakes(
    chain: str, address: str, said: Said, known: Mapping[ContractKey, str]
) -> dict[str, list[tuple[str, Stake]]]:
    """Return the claims of one wallet by vault, the widest first."""
    found: dict[str, list[tuple[str, Stake]]] = {}
    for vault, contract, token_id, amount, single in sorted(said, key=lambda one: one[:3]):
        most = _counting(amount or 0, single, known.get((chain, contract))) if token_id else None
        if vault != address and most != 0:
            found.setdefault(vault, []).append((address, Stake(True, contract, token_id, most, address)))
    return found


def _as_seen_by(discord_id: str, claims: Iterable[tuple[str, Stake]]) -> Iterator[Stake]:
    """Yield the claims up to the first one on everything; later ones get nothing."""
    for whose, stake in claims:
        yield Stake(whose == discord_id, stake.contract, stake.token_id, stake.amount, stake.delegate)
        if not stake.contract:
            return


def _doubts(
    who: Who,
    mine: set[DelegateKey],
    reads: Mapping[DelegateKey, DelegationRead],
    said: Mapping[DelegateKey, Said],
    claims: Claims,
) -> dict[str, str]:
    """Return why the member may be able to count more than is known, by chain."""
    doubts: dict[str, str] = {}
    for pair in sorted(mine):
        row = reads.get(pair)
        # An erasure makes rows for which nothing was read.
        if row is None or (row.read_at is None and row.fault is None):
            reason = N_("not read yet")
        else:
            reason = row.fault or (TOO_MANY if row.more else None)
        if any(len(claims.get((who[0], pair[0], one[0]), ())) > MOST_CLAIMS for one in said.get(pair, ())):
            reason = reason or N_("too many wallets may speak for one vault")
        if reason is not None:
            doubts.setdefault(pair[0], unread(reason))
    return doubts


async def _reads(db: AsyncSession, pairs: Sequence[DelegateKey]) -> dict[DelegateKey, DelegationRead]:
    found: dict[DelegateKey, DelegationRead] = {}
    for some in chunks(pairs, 4_000):
        rows = await db.exec(
            select(DelegationRead)
            .where(tuple_(col(DelegationRead.chain), col(DelegationRead.delegate)).in_(some))
            .execution_options(populate_existing=True)
        )
        found.update({(row.chain, row.delegate): row for row in rows.all()})
    return found


async def _claims(db: AsyncSession, people: Sequence[Who], places: Sequence[VaultPlace]) -> Claims:
    """Return the claims on vaults of these servers by members whose wallets count, the oldest first.

    Not every vault in every server: one member may have thousands, and a batch has members of thousands of servers.
    A claim is as old as the later of its delegation and its member's proof of the wallet.
    """
    result = await db.execute(
        """
        SELECT v.server_id, d.chain, d.vault, u.discord_id, d.delegate, d.contract, d.token_id, d.amount, d.single,
               k.standard
        FROM unnest(CAST(:at AS integer[]), CAST(:chains AS text[]), CAST(:vaults AS text[]))
            AS v (server_id, chain, vault)
        JOIN delegation d ON d.chain = v.chain AND d.vault = v.vault
        LEFT JOIN collection k ON k.chain = d.chain AND k.contract = d.contract
        JOIN wallet w ON w.family = 'evm' AND w.address = d.delegate AND w.chain IN ('', d.chain)
        JOIN "user" u ON u.id = w.user_id
        LEFT JOIN member m ON m.server_id = v.server_id AND m.discord_id = u.discord_id
        LEFT JOIN member_choice c ON c.server_id = v.server_id AND c.user_id = u.id
        WHERE COALESCE(c.use_wallets, true) AND m.left_at IS NULL AND (
            m.discord_id IS NOT NULL OR (v.server_id, u.discord_id) IN (
                SELECT * FROM unnest(CAST(:servers AS integer[]), CAST(:people AS text[]))))
        ORDER BY 1, 2, 3, GREATEST(d.first_seen_at, w.created_at), w.id, d.contract, d.token_id
        """,
        {**_columns(places), "servers": [server_id for server_id, _ in people], "people": [who for _, who in people]},
    )
    found: dict[VaultPlace, list[tuple[str, Stake]]] = {}
    for server_id, chain, vault, who, delegate, contract, token_id, amount, single, standard in result.all():
        most = _counting(int(amount or 0), single, standard) if token_id else None
        if most != 0:
            stake = Stake(False, str(contract), str(token_id), most, str(delegate))
            found.setdefault((int(server_id), str(chain), str(vault)), []).append((str(who), stake))
    return found


def _counting(amount: int, single: bool, standard: str | None) -> int:
    """Return how many of a single delegated token count; this depends on the contract's standard.

    As in the registry's own checks, only a delegation of the same kind counts for an ERC-1155's or an ERC-721's token.
    If the standard is unknown, either counts.
    """
    if standard == MANY:
        return amount
    if standard is not None and standard.startswith(ONE_BY_ONE):
        return int(single)
    return max(amount, int(single))


async def _owned(db: AsyncSession, places: Sequence[VaultPlace]) -> Owned:
    """Return which of these vaults are proved wallets of members of the server, by server, chain and address."""
    result = await db.execute(
        """
        SELECT v.server_id, v.chain, v.vault, u.discord_id
        FROM unnest(CAST(:at AS integer[]), CAST(:chains AS text[]), CAST(:vaults AS text[]))
            AS v (server_id, chain, vault)
        JOIN wallet w ON w.family = 'evm' AND w.address = v.vault AND w.chain IN ('', v.chain)
        JOIN "user" u ON u.id = w.user_id
        JOIN member m ON m.server_id = v.server_id AND m.discord_id = u.discord_id AND m.left_at IS NULL
        LEFT JOIN member_choice c ON c.server_id = m.server_id AND c.user_id = u.id
        WHERE COALESCE(c.use_wallets, true)
        """,
        _columns(places),
    )
    return {(int(server_id), str(chain), str(vault)): str(who) for server_id, chain, vault, who in result.all()}


def _columns(places: Sequence[VaultPlace]) -> dict[str, object]:
    return {
        "at": [server_id for server_id, _, _ in places],
        "chains": [chain for _, chain, _ in places],
        "vaults": [vault for _, _, vault in places],
    }
