"""Notices that a member sees with the bot's next answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy.orm import aliased
from sqlmodel import col, or_, select, update

from locales import _, day_and_time, first_of, listed
from models import Grant, Notice, now
from models.db.session import AsyncSession
from services.core.discord_text import plain
from services.engine import grace_warnings
from services.guilds.members import MemberContext
from services.guilds.role_safety import UNKNOWN_ROLE
from services.servers import activity
from services.wallets.ownership import has_counting_wallet
from settings import settings

MOST_NOTICES, MOST_ROLES = 10, 10
"""Notices that are shown at once, and roles that a reminder names."""


_GONE = ("role.taken", "role.lost")
_role_id = col(Notice.data)["roleId"].as_string()
_Newer = aliased(Notice)
_HAS_ROLE_AGAIN = (
    select(Grant.role_id)
    .where(
        Grant.server_id == Notice.server_id,
        Grant.discord_id == Notice.discord_id,
        Grant.role_id == _role_id,
        col(Grant.state).in_(("held", "giving")),
    )
    .exists()
)
_REPEATED = (
    select(_Newer.id)
    .where(
        _Newer.server_id == Notice.server_id,
        _Newer.discord_id == Notice.discord_id,
        _Newer.kind == Notice.kind,
        col(_Newer.data)["roleId"].as_string() == _role_id,
        col(_Newer.id) > col(Notice.id),
    )
    .exists()
)
"""Condition: a newer notice says the same about the role; an earlier grace time also had another end."""


@dataclass(frozen=True, slots=True)
class NoticeView:
    """A sentence for the member: a notice that they have not been shown yet, or a reminder, whose id is 0.

    Discord shows `text`, so the names of roles in it are escaped.
    """

    id: int
    text: str
    taken: str | None = None
    """The id of the role that was taken, if the notice is about that."""


async def waiting(db: AsyncSession, member: MemberContext) -> list[NoticeView]:
    """Return the notices to show the member here, oldest first; `mark_shown` marks them as shown.

    Those that are no longer true are left out: about a role that the member has again, for example.
    """
    rows = await db.exec(
        select(Notice)
        .where(
            Notice.discord_id == member.actor.discord_id,
            col(Notice.told_at).is_(None),
            or_(col(Notice.server_id).is_(None), Notice.server_id == member.server_id),
            or_(Notice.kind != grace_warnings.KIND, grace_warnings.STILL_RUNS),
            or_(col(Notice.kind).not_in(_GONE), ~_HAS_ROLE_AGAIN),
            ~_REPEATED,
        )
        .order_by(col(Notice.id))
        .limit(MOST_NOTICES)
    )
    notices = rows.all()
    role_ids = [str(row.data.get("roleId")) for row in notices if row.data.get("roleId")]
    names = await activity.role_names(db, member.server_id, role_ids)
    found = [NoticeView(row.id or 0, _sentence(row.kind, row.data, names), _taken(row)) for row in notices]
    return [*await _move_reminders(db, member), *found]


async def _move_reminders(db: AsyncSession, member: MemberContext) -> list[NoticeView]:
    """Return a reminder for a member without a wallet who has roles of an open move; it is shown each time."""
    rows = (await db.execute(_UNVERIFIED, {"server": member.server_id, "who": member.actor.discord_id})).all()
    if not rows:
        return []
    until, roles = rows[0][0], [str(row[1]) for row in rows]
    names = await activity.role_names(db, member.server_id, roles)
    if rows[0][2]:
        said = _("{bot} will decide about {roles}. Verify a wallet now to keep it.")
    else:
        said = _("{bot} will decide about {roles}. Verify a wallet until {until} to keep it.")
    named = listed(first_of([plain(names.get(role_id) or _(UNKNOWN_ROLE)) for role_id in roles], MOST_ROLES))
    return [NoticeView(0, said.format(bot=settings().bot_name, roles=named, until=day_and_time(until)))]


_UNVERIFIED = f"""
    SELECT v.until, r.role_id, v.until <= now() FROM server_move v
    JOIN member m ON m.server_id = v.server_id AND m.discord_id = :who AND m.left_at IS NULL
    JOIN unnest(v.roles) AS r (role_id) ON r.role_id = ANY(m.roles)
    WHERE v.server_id = :server AND v.state = 'open' AND NOT {has_counting_wallet("v.server_id", "m.discord_id")}
    ORDER BY r.role_id
"""


async def mark_shown(db: AsyncSession, notices: Sequence[NoticeView]) -> None:
    """Mark these notices as shown."""
    if notices:
        ids = [notice.id for notice in notices]
        await db.execute(update(Notice).where(col(Notice.id).in_(ids)).values(told_at=now()))


def _taken(row: Notice) -> str | None:
    return row.data.get("roleId") if row.kind == "role.taken" else None


def _sentence(kind: str, data: Mapping[str, Any], names: Mapping[str, str]) -> str:
    role = plain(str(data.get("roleName") or names.get(str(data.get("roleId"))) or _(UNKNOWN_ROLE)))
    match kind:
        case "role.taken":
            return _("{role} was taken from you, because no rule gives it to you any more.").format(role=role)
        case grace_warnings.KIND:
            until = day_and_time(datetime.fromisoformat(data["at"])) if "at" in data else str(data.get("until", ""))
            return _(
                "No rule gives you {role} any more. It is taken from you on {until}, unless a rule says yes before."
            ).format(role=role, until=until)
        case "role.lost":
            product = settings().product_name
            return _("Somebody else took {role} from you in this server, so {product} does not give it again.").format(
                role=role, product=product
            )
        case "wallet.handed_over":
            return _("Your wallets were handed over to another account with your code, and no longer count for you.")
        case "wallet.moved":
            return _("The wallet {wallet} was verified by somebody else and no longer counts for you.").format(
                wallet=data.get("address", "")
            )
        case _:
            return kind.replace(".", " ").replace("_", " ").capitalize() + "."
