"""A case: everything that is known of a due member before a decision, loaded in sets for a whole batch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import text
from sqlmodel import col, select

from models import Grant, Member, Rule, Server
from models.database import AsyncSession
from services import claimants, delegations, standards
from services.due import Claim
from services.expressions import parse, requirements
from services.policy import GrantFacts, RuleTerms
from services.stakes import Delegated
from services.wants import EVM, Wants, by_chain, family_of


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

    def delegated_by(self, rule: RuleTerms) -> Delegated | None:
        """What vaults let the member count for a rule; None for a rule that does not count it."""
        return self.delegated if rule.delegated else None


async def load(
    db: AsyncSession, claims: Sequence[Claim], *, supposing: Sequence[RuleTerms] | None = None
) -> list[Case]:
    """The cases of a batch, in a handful of statements however many members it has.

    `supposing` are the rules to decide by instead of the stored ones, for a look at what a change would do.
    """
    server_ids = sorted({claim.server_id for claim in claims})
    people = sorted({claim.discord_id for claim in claims})
    servers = {row.id: row for row in (await db.exec(select(Server).where(col(Server.id).in_(server_ids)))).all()}
    rules = await _rules(db, server_ids)
    wallets = await _wallets(db, server_ids, people)
    grants = await _grants(db, server_ids, people)
    members = {
        (row.server_id, row.discord_id): row
        for row in (
            await db.exec(
                select(Member).where(col(Member.server_id).in_(server_ids), col(Member.discord_id).in_(people))
            )
        ).all()
    }
    terms_by_server = rules if supposing is None else {server_id: tuple(supposing) for server_id in server_ids}
    wants = await _wants(db, terms_by_server)
    chains = {server_id: delegations.chains_of(terms) for server_id, terms in terms_by_server.items()}
    delegated = await claimants.load(db, chains, {who: wallets.get(who, ()) for who in _members(claims)})
    cases: list[Case] = []
    for claim in claims:
        server = servers.get(claim.server_id)
        who = (claim.server_id, claim.discord_id)
        member = members.get(who)
        terms = terms_by_server.get(claim.server_id, ())
        cases.append(
            Case(
                claim=claim,
                guild_id=server.discord_id if server else "",
                bot_invited=bool(server and server.bot_invited),
                known=member is not None,
                left=bool(member and member.left_at),
                roles=frozenset(member.roles) if member else frozenset(),
                rules=terms,
                wallets=wallets.get(who, ()),
                grants=grants.get(who, ()),
                wants=wants.get(claim.server_id, {}),
                delegated=delegated.get(who, Delegated()),
            )
        )
    return cases


async def delegations_to_read(
    db: AsyncSession, claims: Sequence[Claim], *, supposing: Sequence[RuleTerms] | None = None
) -> dict[str, delegations.Wanted]:
    """Per chain whose delegations have to be read anew before these cases are loaded."""
    server_ids = sorted({claim.server_id for claim in claims})
    rules = await _rules(db, server_ids) if supposing is None else dict.fromkeys(server_ids, tuple(supposing))
    chains = {server_id: delegations.chains_of(terms) for server_id, terms in rules.items()}
    return await delegations.stale(db, chains, claims)


def _members(claims: Sequence[Claim]) -> list[tuple[int, str]]:
    return [(claim.server_id, claim.discord_id) for claim in claims]


async def _wants(db: AsyncSession, rules: Mapping[int, Sequence[RuleTerms]]) -> dict[int, dict[str, Wants]]:
    """Per server and chain what the deciding rules want to know."""
    leaves = {
        server_id: [leaf for rule in terms if rule.decides for leaf in requirements(rule.expression)]
        for server_id, terms in rules.items()
    }
    every = [leaf for listed in leaves.values() for leaf in listed]
    known = await standards.known(db, [(leaf.chain, leaf.contract) for leaf in every])
    open_ended = sorted({leaf.chain for leaf in every if leaf.type == "any_nft" and family_of(leaf.chain) == EVM})
    countable = await standards.countable(db, open_ended)
    return {server_id: by_chain(listed, known, countable) for server_id, listed in leaves.items()}


def terms_of(rule: Rule) -> RuleTerms:
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


async def _rules(db: AsyncSession, server_ids: Sequence[int]) -> dict[int, tuple[RuleTerms, ...]]:
    found: dict[int, list[RuleTerms]] = {}
    for rule in (await db.exec(select(Rule).where(col(Rule.server_id).in_(server_ids)).order_by(col(Rule.id)))).all():
        found.setdefault(rule.server_id, []).append(terms_of(rule))
    return {server_id: tuple(rules) for server_id, rules in found.items()}


async def _wallets(
    db: AsyncSession, server_ids: Sequence[int], people: Sequence[str]
) -> dict[tuple[int, str], tuple[tuple[str, str], ...]]:
    result = await db.execute(
        text(
            """
            SELECT s.id, u.discord_id, w.family, w.address
            FROM "user" u JOIN wallet w ON w.user_id = u.id
            CROSS JOIN unnest(CAST(:servers AS integer[])) AS s (id)
            LEFT JOIN member_choice c ON c.user_id = u.id AND c.server_id = s.id
            WHERE u.discord_id = ANY(CAST(:people AS text[])) AND COALESCE(c.use_wallets, true)
            ORDER BY w.id
            """
        ),
        {"servers": list(server_ids), "people": list(people)},
    )
    found: dict[tuple[int, str], list[tuple[str, str]]] = {}
    for server_id, discord_id, family, address in result.all():
        found.setdefault((int(server_id), str(discord_id)), []).append((str(family), str(address)))
    return {who: tuple(wallets) for who, wallets in found.items()}


async def _grants(
    db: AsyncSession, server_ids: Sequence[int], people: Sequence[str]
) -> dict[tuple[int, str], tuple[GrantFacts, ...]]:
    found: dict[tuple[int, str], list[GrantFacts]] = {}
    rows = await db.exec(select(Grant).where(col(Grant.server_id).in_(server_ids), col(Grant.discord_id).in_(people)))
    for row in rows.all():
        lost_at = row.updated_at if row.state == "lost" else None
        facts = GrantFacts(
            row.role_id, row.state, tuple(row.rule_ids), row.no_since, lost_at,
            gift=row.gift_since is not None, held_back=row.held_back_at is not None,
        )  # fmt: skip
        found.setdefault((row.server_id, row.discord_id), []).append(facts)
    return {who: tuple(grants) for who, grants in found.items()}


def evidence(readings: Sequence[Any]) -> dict[str, Any]:
    """Readings as one JSON document."""
    return {"readings": [reading.document() for reading in readings]}
