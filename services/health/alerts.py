"""Alerts in a server's log channel: one message when a problem begins and one when it ends."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import text, update
from sqlmodel import col, select

from gateways import Gateways
from gateways.discord.types import ChannelGone, GuildGone, MissingAccess, MissingPermissions
from gateways.transport.errors import ProviderError
from locales import _, speaking
from models import Alert, Server, now
from models.db.session import AsyncSession
from services.core.discord_text import COLORS, LONGEST_DESCRIPTION, cut, plain
from services.health.alert_conditions import Trouble, any_of, of_all
from services.runtime.retries import doubled
from settings import settings

_LEASE = timedelta(seconds=60)
_REFUSED_PAUSE = timedelta(minutes=10)
_LONGEST_PAUSE = 300
_AT_ONCE = 50


@dataclass(frozen=True, slots=True)
class AlertMessage:
    """One message to post: a problem has begun or ended."""

    alert_id: int
    channel_id: str
    title: str
    text: str
    mend: str
    over: bool
    attempts: int
    language: str

    @property
    def mark(self) -> str:
        """The text that identifies the message: at most 25 characters, the limit of Discord's nonces."""
        return f"alert {self.alert_id}{' over' if self.over else ''}"


async def record_begun_and_ended(db: AsyncSession) -> None:
    """Record which problems have begun and ended, for every server with a log channel."""
    rows = await db.exec(
        select(Server.id).where(col(Server.log_channel_id).is_not(None), col(Server.bot_invited).is_(True))
    )
    servers = [server_id for server_id in rows.all() if server_id is not None]
    if not servers:
        return
    troubles = await of_all(db, servers)
    current = {(one.server_id, one.key): one for one in troubles.found}
    open_rows = await db.exec(select(Alert).where(col(Alert.ended_at).is_(None), any_of(Alert.server_id, servers)))
    open_now = {(row.server_id, row.key): row for row in open_rows.all()}
    await _begin(db, [one for key, one in current.items() if one.certain and key not in open_now])
    over = [row for key, row in open_now.items() if key not in current and row.server_id not in troubles.unread]
    await _end(db, [row.id or 0 for row in over])


async def _begin(db: AsyncSession, troubles: Iterable[Trouble]) -> None:
    rows = [
        {"server_id": one.server_id, "key": one.key, "title": one.title, "text": one.text, "mend": one.mend}
        for one in troubles
    ]
    if rows:
        # One document and not one parameter for each value: a node that fails can be a problem of every server.
        await db.execute(text(_BEGIN), {"rows": json.dumps(rows), "now": now()})


_BEGIN = """
    INSERT INTO alert (server_id, key, title, text, mend, began_at, attempts, next_at)
    SELECT server_id, key, title, text, mend, :now, 0, :now
    FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS t (server_id integer, key text, title text, text text, mend text)
    ON CONFLICT DO NOTHING
"""


async def _end(db: AsyncSession, ids: list[int]) -> None:
    if ids:
        ended = {"ended_at": now(), "next_at": now(), "attempts": 0}
        await db.execute(update(Alert).where(any_of(Alert.id, ids)).values(**ended))


async def claim(db: AsyncSession) -> list[AlertMessage]:
    """Return the due messages, claimed for this process for a minute.

    A problem that ended before its first message is never reported.
    """
    result = await db.execute(
        text(
            """
            WITH next AS (
                SELECT a.id, s.log_channel_id, a.ended_at IS NOT NULL AS over, s.language FROM alert a
                JOIN server s ON s.id = a.server_id
                WHERE s.log_channel_id IS NOT NULL AND s.bot_invited AND a.next_at <= clock_timestamp()
                AND ((a.told_at IS NULL AND a.ended_at IS NULL)
                     OR (a.told_at IS NOT NULL AND a.ended_at IS NOT NULL AND a.end_told_at IS NULL))
                ORDER BY a.id LIMIT :limit FOR UPDATE OF a SKIP LOCKED
            )
            UPDATE alert a SET next_at = clock_timestamp() + :lease FROM next WHERE a.id = next.id
            RETURNING a.id, next.log_channel_id, a.title, a.text, a.mend, next.over, a.attempts, next.language
            """
        ),
        {"limit": _AT_ONCE, "lease": _LEASE},
    )
    return [AlertMessage(*row) for row in sorted(result.all())]


async def post_alert(outside: Gateways, alert: AlertMessage) -> ProviderError | None:
    """Post the message, unless it is there already; return the error, if any."""
    footer = f"{settings().product_name} · {alert.mark}"
    try:
        if alert.attempts:
            # Discord forgets nonces after some minutes, so the channel is searched for a message that may have been
            # posted.
            for message in await outside.discord.recent_messages(alert.channel_id):
                if footer in _footers(message.embeds):
                    return None
        await outside.discord.post_message(alert.channel_id, {"embeds": [_embed(alert, footer)]}, alert.mark)
    except ProviderError as fault:
        return fault
    return None


def _embed(alert: AlertMessage, footer: str) -> dict[str, Any]:
    with speaking(alert.language):
        # Translators: the title of an alert whose problem is over; {title} was its title.
        fixed = _("Fixed: {title}").format(title=plain(alert.title, 120))
        over = _("This problem is over.")
        what_to_do = _("What to do:")
    if alert.over:
        return {"title": fixed, "description": over, "color": COLORS["good"], "footer": {"text": footer}}
    return {
        "title": plain(alert.title, 120),
        "description": cut(
            f"{plain(alert.text, 1500)}\n\n**{what_to_do}** {plain(alert.mend, 1000)}", LONGEST_DESCRIPTION
        ),
        "color": COLORS["warning"], "footer": {"text": footer},
    }  # fmt: skip


def _footers(embeds: Iterable[Any]) -> set[str]:
    return {str(one["footer"].get("text")) for one in embeds if isinstance(one, dict) and "footer" in one}  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]


async def record_result(db: AsyncSession, alert: AlertMessage, fault: ProviderError | None) -> None:
    """Record the result of posting; after a refusal, wait long enough for somebody to fix its cause."""
    if fault is None:
        done = {"end_told_at" if alert.over else "told_at": now()}
        await db.execute(
            update(Alert)
            .where(col(Alert.id) == alert.alert_id)
            .values(**done, attempts=0, last_error=None, next_at=now())
        )
        return
    if isinstance(fault, ChannelGone | GuildGone | MissingAccess | MissingPermissions):
        pause = _REFUSED_PAUSE
    else:
        pause = max(_pause_after(alert), timedelta(seconds=fault.retry_after or 0))
    await _try_again(db, alert, str(fault), pause)


async def record_own_fault(db: AsyncSession, alert: AlertMessage, reason: str) -> None:
    """Record that the alert could not be posted because of an error of our own, and try again after a growing pause."""
    await _try_again(db, alert, reason, _pause_after(alert))


def _pause_after(alert: AlertMessage) -> timedelta:
    return timedelta(seconds=doubled(5, alert.attempts, _LONGEST_PAUSE))


async def _try_again(db: AsyncSession, alert: AlertMessage, reason: str, pause: timedelta) -> None:
    await db.execute(
        update(Alert)
        .where(col(Alert.id) == alert.alert_id)
        .values(attempts=alert.attempts + 1, last_error=reason, next_at=now() + pause)
    )
