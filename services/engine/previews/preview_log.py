"""Previews in the audit log, with a daily limit on different previews for each person.

A preview shows who would meet a rule's conditions. Enough previews about single tokens would reveal which tokens a
member holds. A token names its owner's wallet, which the member may not have shared.
"""

import hashlib
import json
from typing import Any, Final

from sqlalchemy import text

from locales import _
from models import Rule
from models.db.session import AsyncSession
from services.core import audit
from services.core.actors import Actor
from services.core.errors import TooMany
from services.rules.expression import Expression, requirements, with_sense
from services.rules.rule_rows import document
from settings import settings

KIND: Final = "rule.previewed"
FEWEST_NAMED = 5
"""How many people must meet a condition on single tokens, traits or a function before a preview names them."""
_LONGEST = 4_000
"""The most characters of a rule's document for which the log line stores the expression."""
_SECONDS = 86_400
_OF_FEW = frozenset({"tokens", "calls", "lists", "nothing"})
"""The sources of conditions that may concern few wallets."""


def is_identifying(*expressions: Expression) -> bool:
    """Return whether few wallets may meet a condition: one on single tokens, traits, addresses or a function.

    Of a condition that only a newer version knows, few may meet too.
    """
    return any(leaf.kind.source in _OF_FEW for expression in expressions for leaf in requirements(expression))


def is_identifying_by_absence(*expressions: Expression) -> bool:
    """Return whether so few may fail to meet a condition: one on what must not be held, or only up to a maximum."""
    leaves = (leaf for expression in expressions for leaf in with_sense(expression))
    return any(leaf.kind.source in _OF_FEW and (not wanted or leaf.most is not None) for leaf, wanted in leaves)


def are_few(meeting: int, others: int, *, by_absence: bool) -> bool:
    """Return whether names would reveal wallets: so few people meet identifying conditions or, by absence, do not."""
    return meeting < FEWEST_NAMED or (by_absence and 0 < others < FEWEST_NAMED)


async def note(db: AsyncSession, actor: Actor, rule: Rule, *, deletes: bool, singling: bool) -> None:
    """Write a preview to the log, once a day for each person and proposal.

    Raises TooMany when the person has previewed too many different rules of this server with conditions on single
    tokens or traits within a day.
    """
    what: dict[str, Any] = {"rule": document(rule), "deletes": deletes}
    written = json.dumps({**what, "rule": {**what["rule"], "name": ""}}, sort_keys=True)
    proposal = hashlib.sha256(written.encode()).hexdigest()[:32]
    if len(written) > _LONGEST:
        what["rule"].pop("expression")
    values = {"server": rule.server_id, "actor": actor.discord_id, "kind": KIND, "proposal": proposal}
    # Previews asked for at once would each count the others as not begun.
    await db.lock(f"previews of {actor.discord_id} in {rule.server_id}")
    found = await db.execute(
        text(
            "SELECT count(*) FILTER (WHERE data ->> 'proposal' = :proposal), "
            "count(*) FILTER (WHERE data ->> 'singling' = 'true') "
            "FROM event WHERE server_id = :server AND kind = :kind AND actor = :actor "
            "AND at > now() - interval '1 day'"
        ),
        values,
    )
    same, singling_today = (int(count) for count in found.one())
    if same:
        return
    if singling and singling_today >= settings().previews_per_day:
        raise TooMany(
            _(
                "You have previewed too many different rules on single tokens, traits or view calls in this server "
                "today. Saving a rule is still possible."
            ),
            _SECONDS,
        )
    data = {**what, "proposal": proposal, "singling": singling}
    # A new rule has a negative id while it is previewed.
    stored = rule.id if rule.id is not None and rule.id > 0 else None
    await audit.record(
        db,
        audit.line(
            KIND, server_id=rule.server_id, actor=actor.discord_id, role_id=rule.role_id, rule_id=stored, data=data
        ),
    )
