"""A server's lists of addresses: stored, compared with members' wallets, and downloaded by those who run the server.

A list is data of the server. It is deleted with the server, and with the last rule that uses it.
"""

from collections.abc import Collection, Iterable, Mapping

from gateways import Gateways
from locales import N_, _
from models.db.session import AsyncSession, Question, Rows, joined
from services.core import queue
from services.core.actors import Actor
from services.core.errors import FieldRefused, ListNotFound
from services.core.json_view import json_view
from services.guilds import permissions
from services.rules.types import address_list_text
from services.rules.types.address_list import ADDRESSES, AddressList
from services.rules.types.address_list_text import ReadList

GONE = N_("The addresses of this list are not stored. Add them again.")
UNUSED_HOURS = 24
"""How long a list without a rule is kept; the privacy policy names it."""
MOST_UNUSED = 5
"""Maximum lists without a rule of one server; the newest ones are kept."""
PAGE = 5_000
"""How many addresses of a download are read at a time."""
_UNUSED = """
    NOT EXISTS (SELECT 1 FROM rule r WHERE r.server_id = l.server_id AND r.deleted_at IS NULL AND jsonb_path_exists(
        r.expression, 'strict $.** ? (@.list == $digest)', jsonb_build_object('digest', l.digest), true))
"""
_OF_LISTS = """
    SELECT e.address FROM address_list l JOIN address_list_entry e ON e.list_id = l.id
    WHERE l.server_id = :server AND l.digest = :{name}
"""


@json_view
class StoredList:
    """A stored list: the digest by which conditions name it, and how many addresses it has."""

    list: str
    count: int


async def put(db: AsyncSession, outside: Gateways, actor: Actor, server_id: int, given: str) -> StoredList:
    """Store a pasted list or a CSV file for a condition that will name it.

    Raises ServerNotFound unless the actor runs the server, FieldRefused, ListRefused with the mistakes by line.
    """
    await permissions.require_admin(db, outside, actor, server_id)
    read = await address_list_text.of_text(given)
    await keep(db, server_id, [read])
    await db.execute(
        f"""
        DELETE FROM address_list WHERE id IN (
            SELECT l.id FROM address_list l WHERE l.server_id = :server AND {_UNUSED}
            ORDER BY l.used_at DESC, l.id DESC OFFSET :most)
        """,
        {"server": server_id, "most": MOST_UNUSED},
    )
    return StoredList(read.digest, read.count)


async def keep(db: AsyncSession, server_id: int, lists: Iterable[ReadList]) -> None:
    """Store lists of a server; a list that is stored already stays unchanged."""
    for one in lists:
        await db.execute(
            """
            WITH kept AS (
                INSERT INTO address_list (server_id, digest, count, used_at)
                VALUES (:server, :digest, :count, now())
                ON CONFLICT (server_id, digest) DO UPDATE SET used_at = now() RETURNING id, xmax = 0 AS is_new)
            INSERT INTO address_list_entry (list_id, address)
            SELECT id, unnest(string_to_array(:addresses, ',')) FROM kept WHERE is_new
            """,
            {"server": server_id, "digest": one.digest, "count": one.count, "addresses": joined(one.addresses)},
        )


async def use(db: AsyncSession, server_id: int, lists: Iterable[AddressList]) -> None:
    """Mark the lists of a rule that is being saved as used. Raises FieldRefused if one is not stored."""
    wanted = {one.list: one.count for one in lists}
    if wanted:
        # An update, so that a concurrent deletion of unused lists checks the row again.
        found = await db.execute(
            "UPDATE address_list SET used_at = now() WHERE server_id = :server AND digest = ANY(:digests) "
            "RETURNING digest, count",
            {"server": server_id, "digests": sorted(wanted)},
        )
        _compare(wanted, found.all())


async def check(db: AsyncSession, server_id: int, lists: Iterable[AddressList], beside: Collection[str] = ()) -> None:
    """Raise FieldRefused if a list is neither stored nor among `beside` (digests)."""
    wanted = {one.list: one.count for one in lists if one.list not in beside}
    if wanted:
        found = await db.execute(
            "SELECT digest, count FROM address_list WHERE server_id = :server AND digest = ANY(:digests)",
            {"server": server_id, "digests": sorted(wanted)},
        )
        _compare(wanted, found.all())


def _compare(wanted: Mapping[str, int], rows: Iterable[Iterable[object]]) -> None:
    if {str(digest): count for digest, count in rows} != dict(wanted):
        raise FieldRefused(ADDRESSES, _(GONE))


async def drop(db: AsyncSession, server_id: int, digests: Collection[str]) -> None:
    """Delete the lists with these digests that no rule of the server uses any more."""
    if digests:
        await db.execute(
            f"DELETE FROM address_list l WHERE l.server_id = :server AND l.digest = ANY(:digests) AND {_UNUSED}",
            {"server": server_id, "digests": sorted(digests)},
        )


async def clear(db: AsyncSession) -> None:
    """Delete the lists that no rule has used for UNUSED_HOURS."""
    await db.execute(
        f"DELETE FROM address_list l WHERE l.used_at < now() - make_interval(hours => :hours) AND {_UNUSED}",
        {"hours": UNUSED_HOURS},
    )


async def mark_differing(db: AsyncSession, server_id: int, before: str, after: str, priority: int) -> None:
    """Queue the members with a wallet that is on only one of two lists."""
    one, other = _OF_LISTS.format(name="before"), _OF_LISTS.format(name="after")
    found = await db.execute(
        f"""
        SELECT DISTINCT m.discord_id
        FROM (({one} EXCEPT {other}) UNION ALL ({other} EXCEPT {one})) x
        JOIN wallet w ON w.address = x.address JOIN "user" u ON u.id = w.user_id
        JOIN member m ON m.server_id = :server AND m.discord_id = u.discord_id
        """,
        {"server": server_id, "before": before, "after": after},
    )
    await queue.mark_members(db, server_id, [str(who) for (who,) in found.all()], priority)


def question(wanted: Iterable[tuple[int, str]], addresses: Iterable[str]) -> Question:
    """Return a statement for `AsyncSession.together`: which of these addresses are on lists (a server and a digest)."""
    places = sorted(set(wanted))
    statement = """
        SELECT l.server_id, l.digest, COALESCE(string_agg(e.address, ','), '')
        FROM unnest(CAST(string_to_array(:servers, ',') AS integer[]), string_to_array(:digests, ','))
            AS w (server_id, digest)
        JOIN address_list l ON l.server_id = w.server_id AND l.digest = w.digest
        LEFT JOIN address_list_entry e ON e.list_id = l.id AND e.address = ANY(string_to_array(:addresses, ','))
        GROUP BY 1, 2
    """
    return statement, {
        "servers": joined(server_id for server_id, _ in places),
        "digests": joined(digest for _, digest in places),
        "addresses": joined(sorted(set(addresses))),
    }


def answered(rows: Rows) -> dict[int, dict[str, frozenset[str]]]:
    """Return the addresses that are on each list, by server and digest, from the rows of `question`.

    A list without an entry here is not stored.
    """
    found: dict[int, dict[str, frozenset[str]]] = {}
    for server_id, digest, addresses in rows:
        found.setdefault(server_id, {})[digest] = frozenset(addresses.split(",") if addresses else ())
    return found


async def of_server(db: AsyncSession, server_id: int) -> tuple[StoredList, ...]:
    """Return the lists of a server that rules use, in a fixed order."""
    found = await db.execute(
        f"SELECT l.digest, l.count FROM address_list l WHERE l.server_id = :server AND NOT ({_UNUSED}) "
        "ORDER BY l.digest",
        {"server": server_id},
    )
    return tuple(StoredList(str(digest), int(count)) for digest, count in found.all())


async def begin_download(db: AsyncSession, outside: Gateways, actor: Actor, server_id: int, digest: str) -> int:
    """Return how many addresses a list has.

    Raises ServerNotFound unless the actor runs the server, ListNotFound unless it has the list.
    """
    await permissions.require_admin_to_read(db, outside, actor, server_id)
    found = await db.execute(
        "SELECT count FROM address_list WHERE server_id = :server AND digest = :digest",
        {"server": server_id, "digest": digest[:64]},
    )
    count = found.scalar_one_or_none()
    if count is None:
        raise ListNotFound
    return int(count)


async def page(db: AsyncSession, server_id: int, digest: str, after: str = "") -> tuple[str, ...]:
    """Return the next PAGE addresses of a list after this one; fewer at the end."""
    found = await db.execute(
        """
        SELECT e.address FROM address_list l JOIN address_list_entry e ON e.list_id = l.id
        WHERE l.server_id = :server AND l.digest = :digest AND e.address > :after ORDER BY e.address LIMIT :most
        """,
        {"server": server_id, "digest": digest, "after": after, "most": PAGE},
    )
    return tuple(str(address) for (address,) in found.all())
