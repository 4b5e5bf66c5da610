"""Alerts in a server's log channel: one when a problem begins and one when it ends; several can be one message."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import update
from sqlmodel import col, select

from gateways import Gateways
from gateways.discord.types import ChannelGone, GuildGone, MissingAccess, MissingPermissions
from gateways.transport.errors import ProviderError
from locales import _, ngettext, speaking
from models import Alert, Server, now
from models.db.session import AsyncSession, any_of
from services.core.discord_text import COLORS, LONGEST_DESCRIPTION, cut, plain
from services.health.alert_conditions import Trouble, of_all
from services.runtime.retries import doubled
from settings import settings

_LEASE = timedelta(seconds=60)
_REFUSED_PAUSE = timedelta(minutes=10)
_LONGEST_PAUSE = 300
_AT_ONCE = 50
_LONGEST_LIST = 2_000
"""Characters of a list of problems in one post."""
_BEFORE_MARKS = " · "
"""What a footer has between the product's name and the marks."""


@dataclass(frozen=True, slots=True)
class AlertMessage:
    """One alert to post, alone or with others: a problem has begun or ended."""

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
        """The text that identifies the alert: at most 25 characters, the limit of Discord's nonces."""
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
        await db.execute(_BEGIN, {"rows": json.dumps(rows), "now": now()})


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
    """Return the due alerts, claimed for this process for a minute.

    Each has the number of its former tries; this one counts from now on, because the process may end in the midst of
    it. A problem that ended before its first message is never reported.
    """
    result = await db.execute(
        """
        WITH next AS (
            SELECT a.id, s.log_channel_id, a.ended_at IS NOT NULL AS over, s.language FROM alert a
            JOIN server s ON s.id = a.server_id
            WHERE s.log_channel_id IS NOT NULL AND s.bot_invited AND a.next_at <= clock_timestamp()
            AND ((a.told_at IS NULL AND a.ended_at IS NULL)
                 OR (a.told_at IS NOT NULL AND a.ended_at IS NOT NULL AND a.end_told_at IS NULL))
            ORDER BY a.id LIMIT :limit FOR UPDATE OF a SKIP LOCKED
        )
        UPDATE alert a SET next_at = clock_timestamp() + :lease, attempts = a.attempts + 1
        FROM next WHERE a.id = next.id
        RETURNING a.id, next.log_channel_id, a.title, a.text, a.mend, next.over, a.attempts - 1, next.language
        """,
        {"limit": _AT_ONCE, "lease": _LEASE},
    )
    return [AlertMessage(*row) for row in sorted(result.all())]


def in_posts(alerts: Iterable[AlertMessage]) -> list[list[AlertMessage]]:
    """Divide the alerts into posts: what begins or ends at the same time in a channel and has the same remedy.

    A bot's role that is moved below fifty others would otherwise fill the channel.
    """
    posts = dict[tuple[str, bool, str], list[AlertMessage]]()
    for alert in alerts:
        posts.setdefault((alert.channel_id, alert.over, alert.mend), []).append(alert)
    return list(posts.values())


async def post(outside: Gateways, alerts: Sequence[AlertMessage]) -> ProviderError | None:
    """Post one of `in_posts`, without what is in the channel already; return the error, if any."""
    channel_id = alerts[0].channel_id
    try:
        if any(alert.attempts for alert in alerts):
            # Discord forgets nonces after some minutes, so the channel is searched for what may have been posted.
            posted = {mark for one in await outside.discord.recent_messages(channel_id) for mark in _marks(one.embeds)}
            alerts = [alert for alert in alerts if alert.mark not in posted]
        if alerts:
            await outside.discord.post_message(channel_id, {"embeds": [_embed(alerts)]}, _nonce(alerts))
    except ProviderError as fault:
        return fault
    return None


def _nonce(alerts: Sequence[AlertMessage]) -> str:
    """Return the nonce of a post: another one if it is about other alerts, or Discord would not show it."""
    marks = ", ".join(alert.mark for alert in alerts)
    return marks if len(alerts) == 1 else f"alerts {hashlib.sha256(marks.encode()).hexdigest()[:16]}"


def _embed(alerts: Sequence[AlertMessage]) -> dict[str, Any]:
    first = alerts[0]
    with speaking(first.language):
        title, told = (plain(first.title, 120), plain(first.text, 1500)) if len(alerts) == 1 else _several(alerts)
        if first.over:
            # Translators: the title of an alert whose problem is over; {title} was its title.
            title = _("Fixed: {title}").format(title=title)
            told = _("This problem is over.") if len(alerts) == 1 else _titles(alerts)
        else:
            what_to_do = _("What to do:")
            told = f"{told}\n\n**{what_to_do}** {plain(first.mend, 1000)}"
    return {
        "title": title, "description": cut(told, LONGEST_DESCRIPTION),
        "color": COLORS["good" if first.over else "warning"],
        "footer": {"text": f"{settings().product_name}{_BEFORE_MARKS}{', '.join(alert.mark for alert in alerts)}"},
    }  # fmt: skip


def _several(alerts: Sequence[AlertMessage]) -> tuple[str, str]:
    """Return the title and the text of a post about several problems."""
    # Translators: the title of a message about several problems.
    title = ngettext("{count} problem", "{count} problems", len(alerts)).format(count=len(alerts))
    if len({alert.text for alert in alerts}) == 1:
        return title, f"{_titles(alerts)}\n\n{plain(alerts[0].text, 1000)}"
    return title, _listed([f"**{plain(alert.title, 120)}** {plain(alert.text, 500)}" for alert in alerts])


def _titles(alerts: Sequence[AlertMessage]) -> str:
    return _listed([plain(alert.title, 120) for alert in alerts])


def _listed(items: Sequence[str]) -> str:
    """Return the first items as a list of at most _LONGEST_LIST characters, and how many more there are."""
    shown, length = list[str](), 0
    for item in items:
        length += len(item)
        if shown and length > _LONGEST_LIST:
            shown.append(_("{count} more").format(count=len(items) - len(shown)))
            break
        shown.append(item)
    return "\n".join(f"• {item}" for item in shown)


def _marks(embeds: Iterable[Any]) -> list[str]:
    """Return the marks in the footers of a message's embeds."""
    footers = [str(one["footer"].get("text")) for one in embeds if isinstance(one, dict) and "footer" in one]  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
    return [mark for footer in footers for mark in footer.rpartition(_BEFORE_MARKS)[2].split(", ")]


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
