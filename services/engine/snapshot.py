"""The database's snapshot of queued members and their servers: rules, wallets, grants, roles."""

import json
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from models import Rule
from models.db.session import AsyncSession, Question, Rows, joined
from services.core.queue import Claim
from services.engine.decide import GrantFacts, MoveTerms
from services.roles.outbox import PROTECTED
from services.rules.expression import Expression, parse_stored
from services.rules.pausing import TOO_MANY
from services.rules.rule_terms import REMOVAL_MODES, RuleTerms
from services.runtime.loop_steps import in_steps


class StoredRule(NamedTuple):
    """The columns of a rule that decisions use."""

    id: int
    server_id: int
    role_id: str
    expression: str
    """The expression's JSON as text; equal texts are parsed once."""
    state: str
    removal_mode: str
    removal_hours: int
    deleted_at: datetime | None
    created_at: datetime
    takes_over: bool
    delegated: bool


_COLUMNS = ", ".join(StoredRule._fields).replace("expression", "CAST(expression AS text)")
_RULES = f"""
    SELECT {_COLUMNS} FROM rule r WHERE server_id = ANY(CAST(:servers AS integer[]))
    AND (pause_cause IS DISTINCT FROM '{TOO_MANY}'
         OR EXISTS (SELECT 1 FROM "grant" g WHERE g.server_id = r.server_id
                    AND (g.role_id = r.role_id OR r.id = ANY(g.rule_ids)))) ORDER BY id
"""
"""Rules paused for exceeding the limits are left out, unless somebody may have a role by them: such roles stay."""

Rules = Mapping[int, Sequence[RuleTerms]]
"""The rules to decide by, by server."""


async def rules_for(db: AsyncSession, claims: Sequence[Claim]) -> Rules:
    """Return the stored rules of these members' servers."""
    (rows,) = await db.together(_rules_of(claims))
    return await _rules(rows)


def _rules_of(claims: Sequence[Claim]) -> Question:
    return _RULES, {"servers": sorted({claim.server_id for claim in claims})}


async def _rules(rows: Rows) -> Rules:
    found: dict[int, list[RuleTerms]] = {}
    async for rule in in_steps(map(StoredRule._make, rows)):
        found.setdefault(rule.server_id, []).append(terms_of(rule))
    return {server_id: tuple(rules) for server_id, rules in found.items()}


Who = tuple[int, str]
"""A server's id and a member's Discord id."""


class SeenMember(NamedTuple):
    """A claimed member as the gateway reported them; `roles` is None if it never did."""

    guild_id: str = ""
    bot_invited: bool = False
    roles: list[str] | None = None
    left: bool = False
    late_gifts: Sequence[str] = ()
    """Roles that may be ours although the ledger has no line for them: their gift began in an earlier membership."""


NOT_SEEN = SeenMember()


class Stored(NamedTuple):
    """The snapshot of a batch's members and their servers."""

    rules: Rules
    members: Mapping[Who, SeenMember]
    wallets: Mapping[Who, tuple[tuple[str, str], ...]]
    grants: Mapping[Who, tuple[GrantFacts, ...]]
    at: datetime
    """When the snapshot was read, by the database's clock; the ledger's times are compared with no other clock."""
    truces: Mapping[Who, Mapping[str, datetime]]
    """By member, until when each role is left alone."""
    moves: Mapping[int, MoveTerms]
    """The servers' open moves."""

    def only(self, servers: Collection[int]) -> "Stored":
        """Return the part of the snapshot about these servers."""
        return Stored(
            {server_id: terms for server_id, terms in self.rules.items() if server_id in servers},
            {who: seen for who, seen in self.members.items() if who[0] in servers},
            {who: mine for who, mine in self.wallets.items() if who[0] in servers},
            {who: facts for who, facts in self.grants.items() if who[0] in servers},
            self.at,
            {who: roles for who, roles in self.truces.items() if who[0] in servers},
            {server_id: move for server_id, move in self.moves.items() if server_id in servers},
        )


async def read(db: AsyncSession, claims: Sequence[Claim]) -> Stored:
    """Return the snapshot, read in one round trip however many members there are."""
    whom = {
        "servers": joined(claim.server_id for claim in claims),
        "people": joined(claim.discord_id for claim in claims),
    }
    said = await db.together(
        _rules_of(claims), (_MEMBERS, whom), (_WALLETS, whom), (_GRANTS, whom), _NOW, (_TRUCES, whom),
        (_MOVES, {"servers": sorted({claim.server_id for claim in claims})}),
    )  # fmt: skip
    rules, members, wallets, grants, now, truces, moves = said
    return Stored(
        await _rules(rules), await _members(members), await _wallets(wallets), await _grants(grants), now[0][0],
        _truces(truces), {server_id: MoveTerms(frozenset(roles), begun) for server_id, roles, begun in moves},
    )  # fmt: skip


_NOW: Question = ("SELECT now()", {})


MOST_BYTES = 64 * 2**20
"""Approximate memory limit of the parsed expressions that a process keeps."""
_ENTRY_BYTES = 400
_TREE_BYTES = 5
"""The memory for an expression: a part for each, and bytes for each character of its text."""


class ParsedExpressions:
    """Parsed expressions by their text; beyond `most_bytes` the least recently used are dropped.

    The limit is not a number of expressions, because an admin can save one of tens of thousands of characters again and
    again.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._known: OrderedDict[str, Expression] = OrderedDict()
        self.bytes: int = 0

    def of(self, text: str) -> Expression:
        """Return the expression that is stored as this JSON text."""
        found = self._known.get(text)
        if found is not None:
            self._known.move_to_end(text)
            return found
        found = self._known[text] = parse_stored(json.loads(text))
        self.bytes += _weight(text)
        while self.bytes > self._most_bytes and len(self._known) > 1:
            self.bytes -= _weight(self._known.popitem(last=False)[0])
        return found


def _weight(text: str) -> int:
    return _ENTRY_BYTES + _TREE_BYTES * len(text)


_expressions = ParsedExpressions()


def terms_of(rule: Rule | StoredRule) -> RuleTerms:
    """Return the fields of a stored rule that decisions use.

    Where only a newer version knows when the role is taken, this one gives and takes nothing: the rule is paused.
    So is a deleted one, because the role of a deleted rule is taken in the rule's way.
    """
    known = rule.removal_mode in REMOVAL_MODES
    return RuleTerms(
        id=rule.id or 0,
        role_id=rule.role_id,
        expression=_expressions.of(stored) if isinstance(stored := rule.expression, str) else parse_stored(stored),
        state=rule.state if known else "paused",
        grace_hours=rule.removal_hours if rule.removal_mode == "grace" else 0,
        deleted=rule.deleted_at is not None and known,
        created_at=rule.created_at,
        takes_over=rule.takes_over,
        delegated=rule.delegated,
    )


_WHOM = """unnest(CAST(string_to_array(:servers, ',') AS integer[]), string_to_array(:people, ','))
           AS c (server_id, discord_id)"""


_MEMBERS = f"""
    SELECT s.id, c.discord_id, s.discord_id, s.bot_invited, m.roles, m.left_at IS NOT NULL,
           ARRAY(SELECT u.role_id FROM unanswered u
                 WHERE u.server_id = c.server_id AND u.discord_id = c.discord_id AND u.giving)
    FROM {_WHOM} JOIN server s ON s.id = c.server_id
    LEFT JOIN member m ON m.server_id = c.server_id AND m.discord_id = c.discord_id
"""


async def _members(rows: Rows) -> dict[Who, SeenMember]:
    return {(server_id, discord_id): SeenMember(*said) async for server_id, discord_id, *said in in_steps(rows)}


_WALLETS = f"""
    SELECT c.server_id, c.discord_id, CASE w.chain WHEN '' THEN w.family ELSE w.family || ':' || w.chain END, w.address
    FROM {_WHOM} JOIN "user" u ON u.discord_id = c.discord_id JOIN wallet w ON w.user_id = u.id
    LEFT JOIN member_choice m ON m.user_id = u.id AND m.server_id = c.server_id
    WHERE COALESCE(m.use_wallets, true) ORDER BY w.id
"""


async def _wallets(rows: Rows) -> dict[Who, tuple[tuple[str, str], ...]]:
    found: dict[Who, list[tuple[str, str]]] = {}
    async for server_id, discord_id, scope, address in in_steps(rows):
        found.setdefault((server_id, discord_id), []).append((scope, address))
    return {who: tuple(mine) for who, mine in found.items()}


_GRANTS = f"""
    SELECT g.server_id, g.discord_id, g.role_id, g.state, g.rule_ids, g.no_since,
           CASE WHEN g.state = 'lost' THEN g.updated_at END,
           g.gift_since IS NOT NULL AND f.discord_id IS NULL, g.held_back_at IS NOT NULL,
           {PROTECTED},
           g.created_at, COALESCE(CAST(g.first_no AS text), ''), g.had_before, f.discord_id IS NOT NULL,
           COALESCE(g.evidence ->> 'given' = 'false', false),
           COALESCE(CASE WHEN g.updated_at > now() - interval '2 hours'
                    THEN CAST(g.evidence -> 'readings' AS text) END, '')
    FROM {_WHOM} JOIN "grant" g ON g.server_id = c.server_id AND g.discord_id = c.discord_id
    JOIN server s ON s.id = g.server_id LEFT JOIN farewell f ON f.discord_id = g.discord_id ORDER BY g.role_id
"""


async def _grants(rows: Rows) -> dict[Who, tuple[GrantFacts, ...]]:
    found: dict[Who, tuple[GrantFacts, ...]] = {}
    async for server_id, discord_id, role_id, state, rule_ids, *rest in in_steps(rows):
        who = (server_id, discord_id)
        facts = GrantFacts(role_id, state, tuple(rule_ids), *rest)
        found[who] = (*found.get(who, ()), facts)
    return found


_MOVES = """
    SELECT server_id, roles, begins_at <= now() FROM server_move
    WHERE state = 'open' AND server_id = ANY(CAST(:servers AS integer[]))
"""
_TRUCES = f"""
    SELECT t.server_id, t.discord_id, t.role_id, t.until
    FROM {_WHOM} JOIN truce t ON t.server_id = c.server_id AND t.discord_id = c.discord_id
"""


def _truces(rows: Rows) -> dict[Who, dict[str, datetime]]:
    found: dict[Who, dict[str, datetime]] = {}
    for server_id, discord_id, role_id, until in rows:
        found.setdefault((server_id, discord_id), {})[role_id] = until
    return found
