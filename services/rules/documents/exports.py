"""Export of a server's rules as a document that another server can import."""

from typing import Any

from sqlmodel import col, select

from gateways import Gateways
from models import Rule
from models.db.session import AsyncSession
from services.core import audit
from services.core.actors import Actor
from services.guilds import permissions
from services.rules import rule_rows
from services.rules.documents import own_format
from services.rules.expression import lists_in, parse_stored
from services.rules.types import stored_address_lists


async def document(db: AsyncSession, outside: Gateways, actor: Actor, server_id: int) -> dict[str, Any]:
    """Return all rules of a server, oldest first, with their lists of addresses, and record the export in the log.

    Raises ServerNotFound unless the actor runs the server, ProviderUnavailable.
    """
    await permissions.require_admin_to_read(db, outside, actor, server_id)
    stored = await db.exec(
        select(Rule).where(Rule.server_id == server_id, col(Rule.deleted_at).is_(None)).order_by(col(Rule.id))
    )
    rules = stored.all()
    digests = {one.list for rule in rules for one in lists_in(parse_stored(rule.expression))}
    lists = {digest: await _addresses(db, server_id, digest) for digest in digests}
    await audit.record(
        db, audit.line("rule.exported", server_id=server_id, actor=actor.discord_id, data={"rules": len(rules)})
    )
    return own_format.written([_written(rule) for rule in rules], lists)


def _written(rule: Rule) -> dict[str, Any]:
    written = rule_rows.document(rule)
    return {"ruleName": written.pop("name"), **written}


async def _addresses(db: AsyncSession, server_id: int, digest: str) -> list[str]:
    found: list[str] = []
    while True:
        page = await stored_address_lists.page(db, server_id, digest, found[-1] if found else "")
        found += page
        if len(page) < stored_address_lists.PAGE:
            return found
