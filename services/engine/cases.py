"""Cases: all that a decision about a queued member needs, loaded for a batch, and how many members fit into one."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from models.db.session import AsyncSession, Rows
from services.collections import standards
from services.core import queue
from services.core.queue import Claim
from services.engine import snapshot
from services.engine.decide import NO_MOVE, NO_ROLES, GrantFacts, MoveTerms
from services.engine.snapshot import NOT_SEEN, Rules, SeenMember, Stored, Who
from services.holdings import delegated_vaults, delegations, stored_balances
from services.holdings.fetch_plan import Wants, addresses_on, by_chain
from services.holdings.wallet_shares import Delegated
from services.rules.expression import Requirement, lists_in, requirements
from services.rules.rule_terms import RuleTerms
from services.rules.types import stored_address_lists
from services.rules.types.address_list_text import ReadList
from services.rules.types.own_tables import OwnTables
from services.runtime.loop_steps import in_steps

ListsByServer = Mapping[int, Mapping[str, ReadList]]
"""Lists of addresses by server and digest."""
AskedByChain = dict[str, dict[int, stored_balances.Asked]]
"""By chain and server, the contracts and wallets that the server's rules read."""
ASKED_FOR = frozenset({queue.WAITING, queue.JOINED, queue.CHANGED, queue.AGAIN})
"""Priorities of reconciles that may follow a purchase that no sighting reported, and of their retries."""


@dataclass(slots=True)
class Case:
    """One member of one server, with rules, wallets, grants and the roles last seen."""

    claim: Claim
    guild_id: str
    bot_invited: bool
    known: bool
    """Whether the gateway has reported this member."""
    left: bool
    roles: frozenset[str]
    rules: tuple[RuleTerms, ...]
    wallets: tuple[tuple[str, str], ...]
    """`(scope, address)` of every wallet that counts in this server; see `fetch_plan.scopes_on`."""
    grants: tuple[GrantFacts, ...]
    wants: dict[str, Wants] = field(default_factory=dict[str, Wants])
    """What the server's deciding rules need, by chain."""
    seen: Mapping[str, int] = field(default_factory=dict[str, int])
    """By chain, the highest block seen for any wallet of this server in the batch; answers must not be older."""
    delegated: Delegated = field(default_factory=Delegated)
    """The vaults that the member may count, for rules that count delegations."""
    followed: frozenset[str] = frozenset()
    """The chains whose newest block is known, so that a lagging node is not believed."""
    tables: OwnTables = field(default_factory=OwnTables)
    """What our own tables say about the server's wallets."""
    truces: Mapping[str, datetime] = field(default_factory=dict[str, datetime])
    """By role, until when it is left alone because rivals reversed our changes repeatedly."""
    late_gifts: frozenset[str] = NO_ROLES
    """Roles that may be ours although the ledger has no line for them: their gift began in an earlier membership."""
    moving: MoveTerms = NO_MOVE
    """The server's open move."""

    @property
    def who(self) -> tuple[int, str]:
        """The server's id and the member's Discord id."""
        return self.claim.server_id, self.claim.discord_id

    def grant_of(self, role_id: str) -> GrantFacts | None:
        """Return the ledger's line for a role, as it was loaded; None if there is none."""
        return next((grant for grant in self.grants if grant.role_id == role_id), None)

    def delegated_by(self, rule: RuleTerms, *, wanted: bool) -> Delegated | None:
        """Return the vaults that count for a condition that is `wanted`; None if the rule does not count them.

        They never count for what must not be held. Otherwise anybody could cost a member a role by delegating to them.
        """
        return self.delegated if rule.delegated and wanted else None


async def load(
    db: AsyncSession, claims: Sequence[Claim], rules: Rules | None = None, lists: ListsByServer | None = None
) -> list[Case]:
    """Return the cases of a batch by its servers' stored rules or, for a preview, by `rules`.

    `lists` are the address lists in these rules that are not stored.
    """
    found = await snapshot.read(db, claims)
    return await build(db, claims, found if rules is None else found._replace(rules=rules), lists)


async def build(
    db: AsyncSession, claims: Sequence[Claim], found: Stored, lists: ListsByServer | None = None
) -> list[Case]:
    """Build the cases of a batch from its snapshot, in a fixed number of statements."""
    facts = await _server_facts(db, claims, found, lists or {})
    return [_case(claim, found, facts) async for claim in in_steps(claims)]


class _ServerFacts(NamedTuple):
    """What the cases of a batch share, mostly by server, beside its snapshot."""

    terms: Mapping[int, tuple[RuleTerms, ...]]
    wants: Mapping[int, dict[str, Wants]]
    seen: Mapping[int, Mapping[str, int]]
    followed: frozenset[str]
    tables: Mapping[int, OwnTables]
    delegated: Mapping[Who, Delegated]


async def _server_facts(db: AsyncSession, claims: Sequence[Claim], found: Stored, lists: ListsByServer) -> _ServerFacts:
    rules, members, wallets, at = found.rules, found.members, found.wallets, found.at
    terms = {server_id: tuple(of_server) for server_id, of_server in rules.items()}
    leaves = await _leaves(rules)
    delegated = await _delegated(db, terms, {who: wallets.get(who, ()) for who in _people(claims)})
    asked = await _asked(leaves, members, wallets, delegated)
    named = await _lists(rules)
    own = {address for mine in wallets.values() for _, address in mine} if named else set[str]()
    kinds, heads, *newest = await db.together(
        standards.question(_places(leaf for listed in leaves.values() for leaf in listed)),
        stored_balances.followed_heads(sorted(asked)),
        *(stored_balances.newest_blocks(chain, list(of_chain.values())) for chain, of_chain in asked.items()),
        *([stored_address_lists.question(named, own)] if named else []),
    )
    on_lists: dict[int, dict[str, frozenset[str]]] = stored_address_lists.answered(newest.pop()) if named else {}
    for server_id, given in lists.items():
        on_lists.setdefault(server_id, {}).update({digest: one.among(own) for digest, one in given.items()})
    followed, known = dict[str, int](heads), standards.answered(kinds)
    return _ServerFacts(
        terms,
        wants={server_id: by_chain(listed, known) async for server_id, listed in in_steps(leaves.items())},
        seen=_blocks_seen(claims, asked, newest, followed),
        followed=frozenset(followed),
        tables={server_id: OwnTables(on_lists.get(server_id, {}), at) for server_id in rules},
        delegated=delegated,
    )


def _blocks_seen(
    claims: Sequence[Claim], asked: AskedByChain, newest: Sequence[Rows], followed: Mapping[str, int]
) -> dict[int, dict[str, int]]:
    """Return, by server and chain, the highest block seen for its wallets; an answer must not be older.

    For a reconcile that somebody asked for, it is at least the newest block of a followed chain: a lagging node does
    not know yet about a purchase made just before.
    """
    seen: dict[int, dict[str, int]] = {}
    for (chain, of_chain), rows in zip(asked.items(), newest, strict=True):
        for server_id, block in zip(of_chain, stored_balances.blocks_of(list(of_chain.values()), rows), strict=True):
            seen.setdefault(server_id, {})[chain] = block
    for server_id in {claim.server_id for claim in claims if claim.priority in ASKED_FOR} & seen.keys():
        of_server = seen[server_id]
        seen[server_id] = {chain: max(block, followed.get(chain, 0)) for chain, block in of_server.items()}
    return seen


def _case(claim: Claim, found: Stored, facts: _ServerFacts) -> Case:
    who = (claim.server_id, claim.discord_id)
    member = found.members.get(who, NOT_SEEN)
    return Case(
        claim=claim,
        guild_id=member.guild_id,
        bot_invited=member.bot_invited,
        known=member.roles is not None,
        left=member.left,
        roles=frozenset(member.roles) if member.roles else NO_ROLES,
        rules=facts.terms.get(claim.server_id, ()),
        wallets=found.wallets.get(who, ()),
        grants=found.grants.get(who, ()),
        wants=facts.wants.get(claim.server_id, {}),
        seen=facts.seen.get(claim.server_id, {}),
        delegated=facts.delegated.get(who, Delegated()),
        followed=facts.followed,
        tables=facts.tables.get(claim.server_id, OwnTables(read_at=found.at)),
        truces=found.truces.get(who, {}),
        late_gifts=frozenset(member.late_gifts) if member.late_gifts else NO_ROLES,
        moving=replace(found.moves.get(claim.server_id, NO_MOVE), has_wallet=who in found.wallets),
    )


async def _delegated(
    db: AsyncSession, terms: Rules, wallets: Mapping[Who, tuple[tuple[str, str], ...]]
) -> dict[Who, Delegated]:
    """Return what these members may count besides their wallets."""
    chains = {server_id: delegations.chains_of(of_server) for server_id, of_server in terms.items()}
    without = {server_id: delegations.chains_without(of_server) for server_id, of_server in terms.items()}
    found = await delegated_vaults.load(db, chains, wallets)
    for who, doubts in (await delegated_vaults.doubts_without_registry(db, without, wallets)).items():
        known = found.get(who, Delegated())
        found[who] = replace(known, doubts={**known.doubts, **doubts})
    return found


async def delegations_to_read(
    db: AsyncSession, claims: Sequence[Claim], rules: Rules
) -> dict[str, delegations.WantedDelegations]:
    """Return, by chain, the delegates whose delegations to read again before these cases are loaded."""
    chains = {server_id: delegations.chains_of(terms) for server_id, terms in rules.items()}
    return await delegations.stale(db, chains, claims)


MOST_CHECKS = 200_000
"""The most balances that one reconcile reads: members times the contracts of their server's rules."""


async def keep_what_fits(db: AsyncSession, worker: str, claims: Sequence[Claim]) -> list[Claim]:
    """Return the claims that fit into one reconcile; release the others.

    If a server's rules name many contracts, fewer of its members fit. It takes no room from other servers.
    """
    leaves = await _leaves(await snapshot.rules_for(db, claims))
    costs = {server_id: len(set(_places(listed))) for server_id, listed in leaves.items()}
    if sum(costs.get(claim.server_id, 0) for claim in claims) <= MOST_CHECKS:
        return list(claims)
    fitting = _fitting(claims, costs, MOST_CHECKS)
    kept = {claim.key for claim in fitting}
    await queue.release(db, worker, [claim for claim in claims if claim.key not in kept])
    return fitting


def _fitting(claims: Sequence[Claim], costs: Mapping[int, int], most: int) -> list[Claim]:
    """Choose claims that need at most `most` checks together, but at least one claim.

    Higher priorities come first. Within a priority the servers take turns, and each turn costs the same.
    """
    spent: dict[int, int] = {}
    turns: list[tuple[int, int, Claim]] = []
    for claim in claims:
        spent[claim.server_id] = spent.get(claim.server_id, 0) + costs.get(claim.server_id, 0)
        turns.append((-claim.priority, spent[claim.server_id], claim))
    turns.sort(key=lambda turn: turn[:2])
    left = most - costs.get(turns[0][2].server_id, 0)
    fitting = [turns[0][2]]
    for _, _, claim in turns[1:]:
        left -= costs.get(claim.server_id, 0)
        if left < 0:
            break
        fitting.append(claim)
    return fitting


def _people(claims: Sequence[Claim]) -> list[tuple[int, str]]:
    return [(claim.server_id, claim.discord_id) for claim in claims]


async def _leaves(rules: Rules) -> dict[int, list[Requirement]]:
    """Return the requirements of each server's deciding rules."""
    return {
        server_id: [leaf for rule in terms if rule.decides for leaf in requirements(rule.expression)]
        async for server_id, terms in in_steps(rules.items())
    }


async def _asked(
    leaves: Mapping[int, Sequence[Requirement]],
    members: Mapping[Who, SeenMember],
    wallets: Mapping[Who, Iterable[tuple[str, str]]],
    delegated: Mapping[Who, Delegated],
) -> AskedByChain:
    """Return, by chain and server, the contracts and wallets that the server's rules read."""
    contracts: dict[int, dict[str, set[str]]] = {}
    async for server_id, listed in in_steps(leaves.items()):
        for chain, contract in _places(listed):
            contracts.setdefault(server_id, {}).setdefault(chain, set()).add(contract)
    owners: dict[tuple[int, str], set[str]] = {}
    async for who, mine in in_steps(wallets.items()):
        server_id = who[0]
        if (member := members.get(who)) is None or member.left or not member.bot_invited:
            continue
        for chain in contracts.get(server_id, ()):
            found = owners.setdefault((server_id, chain), set())
            found.update(addresses_on(chain, mine))
            if who in delegated:
                found.update(vault.address for vault in delegated[who].on(chain))
    asked: AskedByChain = {}
    async for (server_id, chain), found in in_steps(owners.items()):
        asked.setdefault(chain, {})[server_id] = sorted(contracts[server_id][chain]), sorted(found)
    return asked


def _places(leaves: Iterable[Requirement]) -> list[standards.ContractKey]:
    return [(leaf.chain, leaf.contract) for leaf in leaves if leaf.kind.on_chain]


async def _lists(rules: Rules) -> list[tuple[int, str]]:
    """Return the server and the digest of each address list that a rule names, whether or not the rule decides."""
    return [
        (server_id, one.list)
        async for server_id, terms in in_steps(rules.items())
        for rule in terms
        for one in lists_in(rule.expression)
    ]
