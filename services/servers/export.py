"""A server for its admins to take along: its rules, and its members with their roles; wallets only as they allow."""

from collections.abc import Iterable

from gateways import Gateways
from models.session import AsyncSession
from services import event_csv, events, member_list, rights, rule_views
from services.actors import Actor
from services.member_list import MemberRow
from services.rule_views import RuleView

PAGE = 200
"""Members that are read at a time; a server may have more than fit into memory at once."""
HEAD = ("member", "member (id)", "has a wallet that counts", "roles", "roles from us", "wallets shared with admins")


async def begin(db: AsyncSession, outside: Gateways, actor: Actor, server_id: int) -> tuple[RuleView, ...]:
    """The server's rules, for somebody who runs it; the log notes who took what along.

    Raises ServerNotFound for anyone else, ProviderUnavailable.
    """
    await rights.to_read(db, outside, actor, server_id)
    await events.record(db, events.line("server.exported", server_id=server_id, actor=actor.discord_id))
    return (await rule_views.of_servers(db, [server_id])).get(server_id, ())


async def members(db: AsyncSession, server_id: int, after: str = "") -> tuple[MemberRow, ...]:
    """The next PAGE members after this Discord id, as admins may see them; fewer when there are no more."""
    return await member_list.after(db, server_id, after, PAGE)


def head() -> str:
    """The first row of the table."""
    return event_csv.table([HEAD])


def body(rows: Iterable[MemberRow]) -> str:
    """A row for each of these members."""
    return event_csv.table(
        (
            row.name, row.discord_id, "yes" if row.verified else "no",
            ", ".join(role.role_name for role in row.roles if role.held),
            ", ".join(role.role_name for role in row.roles if role.granted_by_us), ", ".join(row.wallets),
        )
        for row in rows
    )  # fmt: skip
