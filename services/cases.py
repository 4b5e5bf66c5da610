"""A case: everything that is known of a due member before a decision, loaded in sets for a whole batch."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from models import Rule
from models.database import AsyncSession, joined
from services import claimants, delegations, due, standards
from services.due import Claim
from services.expressions import Requirement, parse, requirements
from services.policy import GrantFacts, RuleTerms
from services.stakes import Delegated
from services.wants import EVM, Wants, by_chain, family_of

NO_ROLES: frozenset[str] = frozenset()


@dataclass(slots=True)
class Case:
    """One member of one server: rules, wallets, ledger, and the roles they were last seen with."""

    claim: Claim
    guild_id: str
    bot_invited: bool
    known: bool
    """Whether the gateway has told us of this member."""
    left: bool
    roles: frozenset[str]
    rules: tuple[RuleTerms, ...]
    wallets: tuple[tuple[str, str], ...]
    """`(family, address)` of every wallet that counts in this server."""
    grants: tuple[GrantFacts, ...]
    wants: dict[str, Wants] = field(default_factory=dict[str, Wants])
    """Per chain what the server's deciding rules want to know."""
    delegated: Delegated = field(default_factory=Delegated)
    """What vaults let the member count, for rules that count it."""

    @property
    def who(self) -> tuple[int, str]:
        """The server's id and the member's Discord id."""
        return self.claim.server_id, self.claim.discord_id

    def delegated_by(self, rule: RuleTerms) -> Delegated | None:
        """What vaults let the member count for a rule; None for a rule that does not count it."""
        return self.delegated if rule.delegated else None


class StoredRule(NamedTuple):
    """The columns of a rule by which is decided."""

    id: int
    server_id: int
    role_id: str
    expression: dict[str, Any]
    state: str
    removal_mode: str
    removal_hours: int
    deleted_at: datetime | None
    created_at: datetime
    takes_over: bool
    delegated: bool


_RULES = (
    f"SELECT {', '.join(StoredRule._fields)} FROM rule WHERE server_id = ANY(CAST(:servers AS integer[])) ORDER BY id"
)

Rules = Mapping[int, Sequence[RuleTerms]]
"""By server the rules to decide by."""


async def rules_for(db: AsyncSession, claims: Sequence[Claim]) -> Rules:
    """The stored rules of these members' servers."""
    (rows,) = await db.together((_RULES, {"servers": sorted({claim.server_id for claim in claims})}))
    found: dict[int, list[RuleTerms]] = {}
    for rule in map(StoredRule._make, rows):
        found.setdefault(rule.server_id, []).append(terms_of(rule))
    return {server_id: tuple(rules) for server_id, rules in found.items()}


async def load(db: AsyncSession, claims: Sequence[Claim], rules: Rules) -> list[Case]:
    """The cases of a batch, in a handful of statements however many members it has.

    `rules` are the stored ones, or, for a look at what a change would do, others.
    """
    whom = {
        "servers": joined(claim.server_id for claim in claims),
        "people": joined(claim.discord_id for claim in claims),
    }
    leaves = _leaves(rules)
    said = await db.together((_MEMBERS, whom), (_WALLETS, whom), (_GRANTS, whom), standards.question(_places(leaves)))
    members, wallets, grants = _members(said[0]), _wallets(said[1]), _grants(said[2])
    terms = {server_id: tuple(of_server) for server_id, of_server in rules.items()}
    wants = await _wants(db, leaves, standards.answered(said[3]))
    chains = {server_id: delegations.chains_of(of_server) for server_id, of_server in terms.items()}
    delegated = await claimants.load(db, chains, {who: wallets.get(who, ()) for who in _people(claims)})
    cases: list[Case] = []
    for claim in claims:
        who = (claim.server_id, claim.discord_id)
        seen = members.get(who, NOT_SEEN)
        cases.append(
            Case(
                claim=claim,
                guild_id=seen.guild_id,
                bot_invited=seen.bot_invited,
                known=seen.roles is not None,
                left=seen.left,
                roles=frozenset(seen.roles) if seen.roles else NO_ROLES,
                rules=terms.get(claim.server_id, ()),
                wallets=wallets.get(who, ()),
                grants=grants.get(who, ()),
                wants=wants.get(claim.server_id, {}),
                delegated=delegated.get(who, Delegated()),
            )
        )
    return cases


async def delegations_to_read(db: AsyncSession, claims: Sequence[Claim], rules: Rules) -> dict[str, delegations.Wanted]:
    """Per chain whose delegations have to be read anew before these cases are loaded."""
    chains = {server_id: delegations.chains_of(terms) for server_id, terms in rules.items()}
    return await delegations.stale(db, chains, claims)


async def as_many_as_fit(db: AsyncSession, worker: str, claims: Sequence[Claim], few: int) -> list[Claim]:
    """The claims that can be looked at together; the worker lets go of the others.

    All whose servers' rules are answered by balances, which tell of thousands at once; of the rest the first `few`.
    """
    if len(claims) <= few:
        return list(claims)
    leaves = _leaves(await rules_for(db, claims))
    wants = await _wants(db, leaves, await standards.known(db, _places(leaves)))
    by_token = {
        server_id for server_id, chains in wants.items() if any(one.tokens or one.anything for one in chains.values())
    }
    too_many = [claim for claim in claims if claim.server_id in by_token][few:]
    if too_many:
        await due.let_go(db, worker, too_many)
    left = {claim.key for claim in too_many}
    return [claim for claim in claims if claim.key not in left]


def _people(claims: Sequence[Claim]) -> list[tuple[int, str]]:
    return [(claim.server_id, claim.discord_id) for claim in claims]


def _leaves(rules: Rules) -> dict[int, list[Requirement]]:
    """Per server what its deciding rules ask for."""
    return {
        server_id: [leaf for rule in terms if rule.decides for leaf in requirements(rule.expression)]
        for server_id, terms in rules.items()
    }


def _places(leaves: Mapping[int, Sequence[Requirement]]) -> list[standards.Place]:
    return [(leaf.chain, leaf.contract) for listed in leaves.values() for leaf in listed]


async def _wants(
    db: AsyncSession, leaves: Mapping[int, Sequence[Requirement]], known: Mapping[standards.Place, str]
) -> dict[int, dict[str, Wants]]:
    """Per server and chain what the deciding rules want to know."""
    every = (leaf for listed in leaves.values() for leaf in listed)
    open_ended = sorted({leaf.chain for leaf in every if leaf.type == "any_nft" and family_of(leaf.chain) == EVM})
    countable = await standards.countable(db, open_ended)
    return {server_id: by_chain(listed, known, countable) for server_id, listed in leaves.items()}


def terms_of(rule: Rule | StoredRule) -> RuleTerms:
    """What a decision has to know of a stored rule."""
    return RuleTerms(
        id=rule.id or 0,
        role_id=rule.role_id,
        expression=parse(rule.expression),
        state=rule.state,
        grace_hours=rule.removal_hours if rule.removal_mode == "grace" else 0,
        deleted=rule.deleted_at is not None,
        created_at=rule.created_at,
        takes_over=rule.takes_over,
        delegated=rule.delegated,
    )


Who = tuple[int, str]
"""A server's id and a member's Discord id."""

_WHOM = """unnest(CAST(string_to_array(:servers, ',') AS integer[]), string_to_array(:people, ','))
           AS c (server_id, discord_id)"""


class _Seen(NamedTuple):
    """A claimed member as the gateway told us of them; without roles when it never did."""

    guild_id: str = ""
    bot_invited: bool = False
    roles: list[str] | None = None
    left: bool = False


NOT_SEEN = _Seen()


Rows = Iterable[Sequence[Any]]

_MEMBERS = f"""
    SELECT s.id, c.discord_id, s.discord_id, s.bot_invited, m.roles, m.left_at IS NOT NULL
    FROM {_WHOM} JOIN server s ON s.id = c.server_id
    LEFT JOIN member m ON m.server_id = c.server_id AND m.discord_id = c.discord_id
"""


def _members(rows: Rows) -> dict[Who, _Seen]:
    return {(server_id, discord_id): _Seen(*said) for server_id, discord_id, *said in rows}


_WALLETS = f"""
    SELECT c.server_id, c.discord_id, w.family, w.address
    FROM {_WHOM} JOIN "user" u ON u.discord_id = c.discord_id JOIN wallet w ON w.user_id = u.id
    LEFT JOIN member_choice m ON m.user_id = u.id AND m.server_id = c.server_id
    WHERE COALESCE(m.use_wallets, true) ORDER BY w.id
"""


def _wallets(rows: Rows) -> dict[Who, tuple[tuple[str, str], ...]]:
    found: dict[Who, tuple[tuple[str, str], ...]] = {}
    for server_id, discord_id, family, address in rows:
        who = (server_id, discord_id)
        found[who] = (*found.get(who, ()), (family, address))
    return found


_GRANTS = f"""
    SELECT g.server_id, g.discord_id, g.role_id, g.state, g.rule_ids, g.no_since,
           CASE WHEN g.state = 'lost' THEN g.updated_at END,
           g.gift_since IS NOT NULL, g.held_back_at IS NOT NULL,
           (g.role_id = ANY(s.protected_roles) OR g.discord_id = ANY(s.protected_members))
           AND NOT EXISTS (SELECT 1 FROM farewell f WHERE f.discord_id = g.discord_id), g.created_at
    FROM {_WHOM} JOIN "grant" g ON g.server_id = c.server_id AND g.discord_id = c.discord_id
    JOIN server s ON s.id = g.server_id ORDER BY g.role_id
"""


def _grants(rows: Rows) -> dict[Who, tuple[GrantFacts, ...]]:
    found: dict[Who, tuple[GrantFacts, ...]] = {}
    for server_id, discord_id, role_id, state, rule_ids, *rest in rows:
        who = (server_id, discord_id)
        facts = GrantFacts(role_id, state, tuple(rule_ids), *rest)
        found[who] = (*found.get(who, ()), facts)
    return found


def evidence(readings: Sequence[Any]) -> dict[str, Any]:
    """Readings as one JSON document."""
    return {"readings": [reading.document() for reading in readings]}
