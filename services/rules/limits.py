"""Limits of one server: its rules, all their conditions, and what these name. The numbers are in `settings.py`.

How many conditions one rule may have is `MAX_LEAVES` in `services/rules/expression.py`.
"""

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlmodel import col

from locales import _, number
from locales.stored_texts import storable
from models import Rule
from models.db.session import AsyncSession
from services.core import audit
from services.core.errors import Conflict, FieldRefused
from services.rules import pausing
from services.rules.expression import ANY_CONTRACT, MAX_LEAVES, Expression, lists_in, requirements, to_document
from services.rules.types.registry import RULE_TYPES
from services.runtime import rate_limits
from settings import settings

log = logging.getLogger(f"holdfast.{__name__}")

_CHAINLESS = " || ".join(f'@.type == "{name}"' for name, kind in RULE_TYPES.items() if kind.chainless)
_CONDITIONS = f"strict $.** ? (exists(@.chain) || ({_CHAINLESS}) && !exists(@.value))"
"""The conditions in an expression's document; those that our own tables answer have no chain. A trait may have one of
their names as its type, and has a value."""
LARGEST_RULE = 64 * 1024
"""Maximum bytes of one rule's conditions in JSON, without the addresses of its lists. A line of the log contains the
conditions twice."""
FAR_BEYOND = 5
"""A server with more than this many times a limit keeps only its oldest rules within the limits; any other server keeps
all its rules."""


def reason() -> str:
    """Return the reason for such a pause, as it is stored for admins."""
    limits = settings()
    return storable(
        "This server has far more rules than a server can have ({rules} rules with {conditions} conditions). The "
        "oldest ones stay active.",
        rules=limits.rules_per_server,
        conditions=limits.conditions_per_server,
    )


async def pause(db: AsyncSession) -> int:
    """Pause the rules beyond the limits in servers that are FAR_BEYOND them; return how many. Given roles stay."""
    limits = settings()
    found = await db.execute(
        """
        WITH crowded AS (
            SELECT server_id FROM rule WHERE deleted_at IS NULL AND state = 'active' GROUP BY server_id
            HAVING count(*) > LEAST(:far * :rules, :far * :conditions / :leaves)),
        mine AS (
            SELECT r.id, r.server_id, (
                SELECT count(*) FROM jsonb_path_query(r.expression, CAST(:conditions_in AS jsonpath))) AS leaves
            FROM rule r JOIN crowded c ON c.server_id = r.server_id
            WHERE r.deleted_at IS NULL AND r.state = 'active'),
        counted AS (
            SELECT id, server_id, row_number() OVER oldest AS rules, sum(leaves) OVER oldest AS conditions,
                   count(*) OVER everything AS all_rules, sum(leaves) OVER everything AS all_conditions
            FROM mine WINDOW oldest AS (PARTITION BY server_id ORDER BY id),
                             everything AS (PARTITION BY server_id))
        SELECT server_id, array_agg(id ORDER BY id) FROM counted
        WHERE (all_rules > :far * :rules OR all_conditions > :far * :conditions)
        AND (rules > :rules OR conditions > :conditions) GROUP BY server_id ORDER BY server_id
        """,
        {
            "rules": limits.rules_per_server, "conditions": limits.conditions_per_server, "far": FAR_BEYOND,
            "leaves": MAX_LEAVES, "conditions_in": _CONDITIONS,
        },
    )  # fmt: skip
    crowded = found.all()
    # Of all servers at once, as where refused roles are tried again: one after the other, the two could deadlock.
    await pausing.lock_rules_where(db, col(Rule.id).in_([rule_id for _, rules in crowded for rule_id in rules]))
    paused = 0
    for server_id, rules in crowded:
        count = await pausing.pause_rules(db, int(server_id), rules, reason(), pausing.TOO_MANY)
        log.warning("paused rules beyond the limits server=%s rules=%s", server_id, count)
        paused += count
    return paused


async def record(db: AsyncSession, lines: list[dict[str, Any]]) -> None:
    """Write lines about rules of one server to its log. Raises TooMany for large rules that people change too often.

    Each line has the whole rule, for a change twice: without a limit, somebody who pauses and resumes a large rule all
    day would fill the disk.
    """
    by_people = [one for one in lines if one["actor"] is not None]
    size = sum(len(json.dumps(one["data"], default=str)) for one in by_people)
    if size >= _LONG:
        await rate_limits.spend_log(by_people[0]["server_id"], size)
    await audit.record_all(db, lines)


_LONG = 4_096
"""Bytes of lines below which they are not counted."""
DELETED_AS_WELL = 2
"""Factor on the limit of rules for a server's rows: deleted rules stay until their roles are settled, which takes as
long as their grace time."""


@dataclass(frozen=True, slots=True)
class Usage:
    """The sums over a server's rules: `conditions` are leaves, `contracts` distinct ones on their chains.

    `token_ids` counts single ids and ranges, `addresses` those of lists. `rows` includes deleted rules that are not
    settled yet.
    """

    rules: int
    conditions: int
    contracts: int
    token_ids: int
    rows: int
    addresses: int


@dataclass(frozen=True, slots=True)
class RoomView:
    """A server's rules and conditions, their limits, and why no rule can be added (or "")."""

    rules: int
    most_rules: int
    conditions: int
    most_conditions: int
    refusal: str

    @property
    def words(self) -> str:
        """The counts in a sentence."""
        return _(
            "{rules} of {most_rules} rules and {conditions} of {most_conditions} conditions of this server are in use."
        ).format(
            rules=self.rules,
            most_rules=self.most_rules,
            conditions=self.conditions,
            most_conditions=self.most_conditions,
        )


async def room(db: AsyncSession, server_id: int) -> RoomView:
    """Return how much of its limits a server has used."""
    used = await _usage(db, server_id)
    limits = settings()
    one_more = replace(used, rules=used.rules + 1, conditions=used.conditions + 1, rows=used.rows + 1)
    return RoomView(
        rules=used.rules,
        most_rules=limits.rules_per_server,
        conditions=used.conditions,
        most_conditions=limits.conditions_per_server,
        refusal=_refusal(used, one_more) or "",
    )


async def lock(db: AsyncSession, server_id: int) -> None:
    """Let no other transaction add to a server's rules until this one ends.

    Take it before locking any row of a rule, so that two writers never deadlock.
    """
    # The server's row is not locked: the bot writes that too, in another order.
    await db.lock(f"rules of server {server_id}")


async def check(db: AsyncSession, server_id: int, tree: Expression, *, rule_id: int = 0) -> None:
    """Raise Conflict if one more rule, or a new tree for `rule_id`, would exceed the server's limits.

    Raises FieldRefused for a tree that is larger than LARGEST_RULE. A server over a limit keeps what it has, and may
    change it without exceeding that limit further. Needs `lock` to be exact with concurrent calls.
    """
    if len(json.dumps(to_document(tree))) > LARGEST_RULE:
        raise FieldRefused(
            "expression",
            _(
                "The conditions of a rule can take {size} KiB at most. Use ranges of token IDs, or make two rules."
            ).format(size=LARGEST_RULE // 1024),
        )
    leaves = list(requirements(tree))
    before = await _usage(db, server_id)
    places = [(leaf.chain, leaf.contract) for leaf in leaves if leaf.chain]
    others = await _usage(db, server_id, without=rule_id, beside=places)
    after = Usage(
        rules=others.rules + 1,
        conditions=others.conditions + len(leaves),
        contracts=others.contracts,
        token_ids=others.token_ids + sum(len(leaf.token_ids) for leaf in leaves),
        rows=others.rows + 1,
        addresses=others.addresses + sum(one.count for one in lists_in(tree)),
    )
    if refusal := _refusal(before, after):
        raise Conflict(refusal)


def _refusal(before: Usage, after: Usage) -> str | None:
    """Return which limit is exceeded further than before, and what to do about it, or None."""
    most = settings()
    if before.rules < after.rules > most.rules_per_server:
        return _(
            "This server has {count} rules, and a server can have at most {most}. Delete a rule that you no longer "
            "need, or put several conditions into one rule."
        ).format(count=before.rules, most=most.rules_per_server)
    if before.conditions < after.conditions > most.conditions_per_server:
        return _(
            "The rules of this server would have {count} conditions in all, and a server can have at most {most}. "
            "Remove conditions, or delete a rule that you no longer need."
        ).format(count=after.conditions, most=most.conditions_per_server)
    if before.contracts < after.contracts > most.contracts_per_server:
        return _(
            "The rules of this server would name {count} different collections, and a server can name at most {most}. "
            "Remove conditions, or delete a rule that you no longer need."
        ).format(count=after.contracts, most=most.contracts_per_server)
    if before.token_ids < after.token_ids > most.token_ids_per_server:
        return _(
            "The rules of this server would list {count} token IDs and ranges, and a server can list at most {most}. "
            "Use ranges, or delete a rule that you no longer need."
        ).format(count=after.token_ids, most=most.token_ids_per_server)
    if before.addresses < after.addresses > most.addresses_per_server:
        return _(
            "The lists in the rules of this server would have {count} addresses, and a server can list at most {most}. "
            "Shorten a list, or delete a rule that you no longer need."
        ).format(count=number(after.addresses), most=number(most.addresses_per_server))
    if before.rows < after.rows > most.rules_per_server * DELETED_AS_WELL:
        return _(
            "{count} deleted rules of this server still wait until the roles that they gave are settled. You can add "
            "rules again once some of them are."
        ).format(count=before.rows - before.rules)
    return None


async def _usage(
    db: AsyncSession, server_id: int, *, without: int = 0, beside: Sequence[tuple[str, str]] = ()
) -> Usage:
    """Return the sums over a server's rules except `without`, with the contracts in `beside` added."""
    result = await db.execute(
        """
        WITH mine AS (
            SELECT deleted_at IS NULL AS living, expression FROM rule WHERE server_id = :server AND id <> :without),
        leaf AS (
            SELECT one ->> 'chain' AS chain, one ->> 'contract' AS contract,
                   jsonb_array_length(COALESCE(one -> 'tokenIds', '[]')) AS token_ids,
                   COALESCE(CAST(one ->> 'count' AS integer), 0) AS addresses
            FROM mine, jsonb_path_query(expression, CAST(:conditions AS jsonpath)) AS one WHERE living),
        place AS (
            SELECT chain, contract FROM leaf WHERE chain IS NOT NULL
            UNION SELECT chain, contract
            FROM jsonb_to_recordset(CAST(:beside AS jsonb)) AS b (chain text, contract text))
        SELECT (SELECT count(*) FROM mine WHERE living), (SELECT count(*) FROM leaf),
               (SELECT count(*) FROM place WHERE contract <> :any),
               (SELECT COALESCE(sum(token_ids), 0) FROM leaf), (SELECT count(*) FROM mine),
               (SELECT COALESCE(sum(addresses), 0) FROM leaf)
        """,
        {
            "server": server_id, "without": without, "any": ANY_CONTRACT, "conditions": _CONDITIONS,
            "beside": json.dumps([{"chain": chain, "contract": contract} for chain, contract in set(beside)]),
        },
    )  # fmt: skip
    return Usage(*(int(one) for one in result.one()))
