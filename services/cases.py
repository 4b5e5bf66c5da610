"""A case: everything that is known of a due member before a decision, loaded in sets for a whole batch."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import text
from sqlmodel import col, select

from models import Grant, Member, Rule, Server
from models.database import AsyncSession
from services.due import Claim
from services.expressions import parse, requirements
from services.policy import GrantFacts, RuleTerms


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
    contracts: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Per chain the contracts that the server's deciding rules ask about."""


async def load(db: AsyncSession, claims: Sequence[Claim]) -> list[Case]:
    """The cases of a batch, in a handful of statements however many members it has."""
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
    cases: list[Case] = []
    for claim in claims:
        server = servers.get(claim.server_id)
        who = (claim.server_id, claim.discord_id)
        member = members.get(who)
        terms = rules.get(claim.server_id, ())
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
                contracts=contracts_by_chain(terms),
            )
        )
    return cases


def contracts_by_chain(rules: Sequence[RuleTerms]) -> dict[str, tuple[str, ...]]:
    """Per chain, in a fixed order, the contracts that the deciding rules ask about."""
    found: dict[str, set[str]] = {}
    for rule in rules:
        if rule.decides:
            for requirement in requirements(rule.expression):
                found.setdefault(requirement.chain, set()).add(requirement.contract)
    return {chain: tuple(sorted(contracts)) for chain, contracts in sorted(found.items())}


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
        facts = GrantFacts(row.role_id, row.state, tuple(row.rule_ids), row.no_since, lost_at)
        found.setdefault((row.server_id, row.discord_id), []).append(facts)
    return {who: tuple(grants) for who, grants in found.items()}


def evidence(readings: Sequence[Any]) -> dict[str, Any]:
    """Readings as one JSON document."""
    return {"readings": [reading.document() for reading in readings]}
