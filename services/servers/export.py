"""Export a server for its admins: its rules, and its members with their roles; wallets only with consent."""

from collections.abc import Iterable

from gateways import Gateways
from locales import NP_, _
from models.db.session import AsyncSession
from services.core import audit
from services.core.actors import Actor
from services.guilds import permissions
from services.rules import views
from services.rules.views import RuleView
from services.servers import csv_tables
from services.servers.member_list import MemberRow

PAGE = 200
"""How many members are read at a time, because a server may have more than fit into memory."""
HEAD = (
    NP_("column", "member"), NP_("column", "member (id)"), NP_("column", "has a wallet that counts"),
    NP_("column", "roles"), NP_("column", "roles from us"), NP_("column", "wallets shared with admins"),
)  # fmt: skip


async def begin(db: AsyncSession, outside: Gateways, actor: Actor, server_id: int) -> tuple[RuleView, ...]:
    """Return the server's rules for somebody who runs it, and record the export in the log.

    Raises ServerNotFound for anyone else, ProviderUnavailable.
    """
    await permissions.require_admin_to_read(db, outside, actor, server_id)
    await audit.record(db, audit.line("server.exported", server_id=server_id, actor=actor.discord_id))
    return (await views.of_servers(db, [server_id])).get(server_id, ())


def body(rows: Iterable[MemberRow]) -> str:
    """Return a row for each of these members."""
    return csv_tables.table(
        (
            row.name, row.discord_id, _("yes") if row.verified else _("no"),
            ", ".join(role.role_name for role in row.roles if role.held),
            ", ".join(role.role_name for role in row.roles if role.granted_by_us), ", ".join(row.wallets),
        )
        for row in rows
    )  # fmt: skip
