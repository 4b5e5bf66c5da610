"""Previews in the audit log, with a daily limit on different previews for each person.

A preview shows who would meet a rule's conditions, so enough of them would reveal whose wallet is whose
(`identifying.py`).
"""

import hashlib
import json
from typing import Any, Final

from locales import _
from models import Rule
from models.db.session import AsyncSession
from services.core import audit
from services.core.actors import Actor
from services.core.errors import TooMany
from services.rules.rule_rows import document
from settings import settings

KIND: Final = "rule.previewed"
_LONGEST = 4_000
"""The most characters of a rule's document for which the log line stores the expression."""
_SECONDS = 86_400


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
        "SELECT count(*) FILTER (WHERE data ->> 'proposal' = :proposal), "
        "count(*) FILTER (WHERE data ->> 'singling' = 'true') "
        "FROM event WHERE server_id = :server AND kind = :kind AND actor = :actor "
        "AND at > now() - interval '1 day'",
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
