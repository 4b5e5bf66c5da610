"""Deliveries to webhooks: claimed for one server at a time, made into signed bodies, and retried for a day."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast
from uuid import UUID

from locales import N_
from models.db.session import AsyncSession
from services.accounts import encryption
from services.accounts.developers.webhooks import TEST, in_force
from services.accounts.encryption import UnreadableToken
from services.core.addresses import shorten
from services.runtime.loop_steps import in_steps
from settings import settings

AT_ONCE = 20
"""Deliveries of one server in one turn."""
LEASE = timedelta(minutes=2)
"""How long a worker holds a webhook: more than twice a turn. After it, another worker takes over from a dead one."""
LIFE = timedelta(days=1)
"""How long a delivery is tried."""
PAUSES = (5, 30, 120, 600, 1_800, 3_600, 7_200)
"""Seconds between the attempts of a delivery; the last one repeats."""
LONGEST_REST = 1_800
"""The most seconds that a failing webhook waits before its other deliveries are tried."""
OFTEN = 5
"""A webhook with more failures in a row than this gets its turn after all others."""
MOST_EXPIRED = 1_000
"""The most deliveries that one turn gives up because they have waited for LIFE."""
KEPT = timedelta(days=3)
"""How long a finished delivery is kept for the screen."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """One delivery; `body` is None if it may no longer be sent.

    `early` says that its own pause has not ended: it is tried nevertheless, so that events stay in order after an
    outage.
    """

    id: int
    uuid: UUID
    event: str
    attempts: int
    created_at: datetime
    body: bytes | None
    early: bool


@dataclass(frozen=True, slots=True)
class DeliveryTurn:
    """The turn of one server's webhook, for one worker; `secrets` is empty if they cannot be decrypted."""

    server_id: int
    url: str
    secrets: tuple[str, ...]
    failures: int
    slow: bool
    worker: str
    since: datetime
    """When the webhook was set: earlier events are not sent to it."""

    @property
    def after_outage(self) -> bool:
        """Whether the receiver has failed for so long that newer deliveries are due before the oldest is again."""
        return self.failures > OFTEN


async def claim(db: AsyncSession, worker: str, *, healthy: bool = False) -> DeliveryTurn | None:
    """Claim the webhook with a due delivery that has waited longest for its turn, or return None.

    `healthy` limits the choice to webhooks whose receiver accepted the last delivery and was fast.
    """
    found = await db.execute(
        """
        UPDATE webhook SET claimed_until = now() + :lease, claimed_by = :worker, served_at = now()
        WHERE server_id = (
            SELECT w.server_id FROM webhook w
            WHERE w.next_at <= now() + interval '1 second' AND (w.claimed_until IS NULL OR w.claimed_until < now())
            AND EXISTS (
                SELECT 1 FROM webhook_delivery d WHERE d.server_id = w.server_id AND d.state = 'waiting'
                AND d.next_at <= now() + interval '1 second')
            AND NOT (CAST(:healthy AS boolean) AND (w.slow OR w.failures > 0))
            ORDER BY w.failures > :often, w.served_at LIMIT 1 FOR UPDATE SKIP LOCKED)
        RETURNING server_id, url, secret, CASE WHEN old_until > now() THEN old_secret END, old_until, failures,
            slow, created_at
        """,
        {"lease": LEASE, "worker": worker, "healthy": healthy, "often": OFTEN},
    )
    row = found.first()
    if row is None:
        return None
    server_id, url, secret, former, until, failures, slow, since = row
    signing = _unsealed(secret, former, until)
    return DeliveryTurn(int(server_id), str(url), signing, int(failures), bool(slow), worker, since)


async def due(db: AsyncSession, turn: DeliveryTurn) -> tuple[Delivery, ...]:
    """Return the due deliveries of a claimed webhook, and give up those that have waited for LIFE.

    Commit the claim first: an error here then takes the turn of no other webhook.
    """
    await _expire(db, turn.server_id)
    asked = {"server": turn.server_id, "since": turn.since, "most": AT_ONCE, "failing": turn.after_outage}
    rows = await db.execute(_DUE, asked)
    return tuple(_order(one) for one in rows.mappings().all())


def _unsealed(secret: bytes, former: bytes | None, until: datetime | None) -> tuple[str, ...]:
    """Return the secrets, or none if they were sealed with a lost key, so that only this webhook fails."""
    try:
        present = encryption.unseal(bytes(secret))
        if former is None or until is None:
            return (present,)
        return present, *(one for one, _ in in_force(encryption.unseal(bytes(former)), until))
    except UnreadableToken:
        return ()


async def _expire(db: AsyncSession, server_id: int) -> None:
    gone = await db.execute(
        """
        UPDATE webhook_delivery SET state = 'failed', done_at = now(), fault = COALESCE(fault, :not_tried)
        WHERE id IN (SELECT id FROM webhook_delivery WHERE server_id = :server AND state = 'waiting'
                     ORDER BY id LIMIT :most)
        AND created_at <= now() - :life RETURNING id
        """,
        {"server": server_id, "most": MOST_EXPIRED, "life": LIFE, "not_tried": N_("not tried in time")},
    )
    if gone.first() is not None:
        await db.execute("UPDATE webhook SET gave_up_at = now() WHERE server_id = :server", {"server": server_id})


# A wallet is read at this moment, and only if its owner still shares it with this server's admins.
_DUE = """
    SELECT d.id, d.uuid, d.event, d.attempts, d.created_at, d.event_id, s.id AS server_id, s.discord_id AS guild_id,
           d.created_at > CAST(:since AS timestamptz) - interval '5 seconds' AS ours,
           d.next_at > now() + interval '1 second' AS early,
           e.id IS NOT NULL AS known, e.at, e.kind, e.subject, e.role_id, e.rule_id,
           e.data, r.name AS rule_name,
           EXISTS (SELECT 1 FROM farewell f WHERE f.discord_id = e.subject)
               OR COALESCE(e.subject LIKE 'forgotten-%', false) AS forgotten,
           (SELECT json_build_object('address', w.address, 'family', w.family) FROM wallet w
            JOIN "user" u ON u.id = w.user_id AND u.discord_id = e.subject
            JOIN member_choice c ON c.server_id = d.server_id AND c.user_id = u.id AND c.use_wallets AND c.share_wallets
            JOIN member m ON m.server_id = d.server_id AND m.discord_id = e.subject AND m.left_at IS NULL
            WHERE e.kind = 'wallet.proved' AND s.bot_left_at IS NULL
            AND w.id = CAST(e.data ->> 'walletId' AS integer)) AS wallet
    FROM webhook_delivery d JOIN server s ON s.id = d.server_id
    LEFT JOIN event e ON e.id = d.event_id
    LEFT JOIN rule r ON r.id = e.rule_id AND r.server_id = d.server_id
    WHERE d.server_id = :server AND d.state = 'waiting' AND (d.next_at <= now() + interval '1 second'
        OR CAST(:failing AS boolean) AND d.id = (
            SELECT min(o.id) FROM webhook_delivery o WHERE o.server_id = :server AND o.state = 'waiting'))
    ORDER BY d.id LIMIT :most
"""


def _order(row: Mapping[Any, Any]) -> Delivery:
    body = None
    data = _data(row) if row["ours"] and not row["forgotten"] else None
    if data is not None:
        at: datetime = row["at"] or row["created_at"]
        document = {
            "id": str(row["uuid"]), "event": row["event"], "createdAt": at.isoformat(), "serverId": row["server_id"],
            "guildId": row["guild_id"], "data": data,
        }  # fmt: skip
        body = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    return Delivery(row["id"], row["uuid"], row["event"], row["attempts"], row["created_at"], body, row["early"])


def _data(row: Mapping[Any, Any]) -> dict[str, Any] | None:
    """Return the event's data for the body, or None if the event may not be sent."""
    if row["event"] == TEST:
        return {}
    if not row["known"]:
        return None
    said: dict[str, Any] = row["data"]
    match row["event"]:
        case "role.given" | "role.taken":
            return {"discordId": row["subject"], "roleId": row["role_id"], "ruleIds": said.get("ruleIds") or []}
        case "rule.changed" if row["kind"] == "batch.undone":
            change = _UNDONE.get(said["of"], "changed")
            if said.get("rules") != 1:
                return _rule_data(None, None, change) | {"ruleIds": said.get("ruleIds") or []}
            return _rule_data(row["rule_id"], _name(row, "before", "rule"), change)
        case "rule.changed":
            change = str(row["kind"]).partition(".")[2]
            return _rule_data(row["rule_id"], _name(row, "rule", "after"), change)
        case "breaker.tripped":
            return {"roleId": row["role_id"], "wouldLose": said.get("wouldLose"), "holders": said.get("holders")}
        case "wallet.proved" if row["wallet"]:
            return {
                "discordId": row["subject"], "wallet": shorten(row["wallet"]["address"]),
                "family": row["wallet"]["family"], "method": said.get("method"),
            }  # fmt: skip
        case _:
            return None


def _rule_data(rule_id: int | None, name: str | None, change: str) -> dict[str, Any]:
    ids = [] if rule_id is None else [rule_id]
    return {"ruleId": rule_id, "ruleName": name, "ruleIds": ids, "change": change}


_UNDONE = {"rule.deleted": "created", "rule.paused": "resumed"}
"""What the undo of an event does to its rules; of any other event it changes them."""


def _name(row: Mapping[Any, Any], *documents: str) -> str | None:
    """Return the rule's name in the first of these documents that has one, otherwise the stored one."""
    said: dict[str, Any] = row["data"]
    found = [cast("dict[str, Any]", said[name]) for name in documents if isinstance(said.get(name), dict)]
    return next((one["name"] for one in found if one.get("name")), row["rule_name"])


async def record_delivery(db: AsyncSession, turn: DeliveryTurn, order: Delivery) -> None:
    """Record that the receiver has accepted a delivery; after an outage everything else is due now."""
    await _finish(db, order, "delivered")
    if turn.after_outage:
        theirs = {"server": turn.server_id, "url": turn.url}
        await db.execute("UPDATE webhook SET next_at = now() WHERE server_id = :server AND url = :url", theirs)
        await db.execute(
            "UPDATE webhook_delivery SET next_at = now() "
            "WHERE server_id = :server AND state = 'waiting' AND next_at > now()",
            theirs,
        )
    await db.execute(
        "UPDATE webhook SET failures = 0, failing_since = NULL, gave_up_at = NULL "
        "WHERE server_id = :server AND (failures > 0 OR gave_up_at IS NOT NULL) AND url = :url",
        {"server": turn.server_id, "url": turn.url},
    )


async def drop(db: AsyncSession, order: Delivery) -> None:
    """Record that a delivery may no longer be sent."""
    await _finish(db, order, "dropped", attempted=False)


async def _finish(db: AsyncSession, order: Delivery, state: str, *, attempted: bool = True, fault: str = "") -> None:
    await db.execute(
        "UPDATE webhook_delivery SET state = :state, attempts = attempts + :one, fault = NULLIF(:fault, ''), "
        "done_at = now() WHERE id = :id AND state = 'waiting'",
        {"id": order.id, "state": state, "one": int(attempted), "fault": fault},
    )


async def record_failure(db: AsyncSession, turn: DeliveryTurn, order: Delivery, fault: str) -> None:
    """Record a failed attempt: try again after a growing pause, or give up after LIFE. The webhook pauses too."""
    seconds = PAUSES[min(order.attempts, len(PAUSES) - 1)]
    tried = await db.execute(
        """
        UPDATE webhook_delivery SET attempts = attempts + 1, fault = :fault, next_at = now() + :pause
        WHERE id = :id AND state = 'waiting' AND created_at > now() + :pause - :life RETURNING id
        """,
        {"id": order.id, "fault": fault[:200], "pause": timedelta(seconds=seconds), "life": LIFE},
    )
    gave_up = tried.first() is None
    if gave_up:
        await _finish(db, order, "failed", fault=fault[:200])
    rest = min(PAUSES[min(turn.failures, len(PAUSES) - 1)], LONGEST_REST)
    await db.execute(
        """
        UPDATE webhook SET failures = failures + 1, failing_since = COALESCE(failing_since, now()),
            next_at = now() + :rest, gave_up_at = CASE WHEN :gave_up THEN now() ELSE gave_up_at END
        WHERE server_id = :server AND url = :url
        """,
        {"server": turn.server_id, "url": turn.url, "rest": timedelta(seconds=rest), "gave_up": gave_up},
    )


async def release(
    db: AsyncSession, turn: DeliveryTurn, rest: timedelta | None = None, *, slow: bool | None = None
) -> None:
    """End a turn; `rest` delays the next one. `slow` is whether the receiver was slow, or None if that is unknown."""
    await db.execute(
        "UPDATE webhook SET claimed_until = NULL, claimed_by = NULL, slow = :slow, "
        "next_at = GREATEST(next_at, now() + CAST(:rest AS interval)) "
        "WHERE server_id = :server AND claimed_by = :worker",
        {
            "server": turn.server_id, "worker": turn.worker, "rest": rest or timedelta(),
            "slow": turn.slow if slow is None else slow,
        },
    )  # fmt: skip


async def seal_again(db: AsyncSession) -> None:
    """Seal the secrets of all webhooks with the present key while there is a previous one, which is dropped later."""
    if settings().secret_key_previous is None:
        return
    for column in ("secret", "old_secret"):
        rows = await db.execute(f"SELECT server_id, {column} FROM webhook WHERE {column} IS NOT NULL")
        async for server_id, sealed in in_steps(rows.all()):
            if (fresh := encryption.seal_again(bytes(sealed))) is not None:
                # Only if nobody has made a new secret meanwhile.
                await db.execute(
                    f"UPDATE webhook SET {column} = :fresh WHERE server_id = :server AND {column} = :sealed",
                    {"fresh": fresh, "server": server_id, "sealed": bytes(sealed)},
                )


async def clear(db: AsyncSession) -> None:
    """Delete deliveries created more than LIFE and KEPT ago; each has ended by then, or its webhook is gone."""
    await db.execute(
        "DELETE FROM webhook_delivery WHERE created_at < now() - :kept - :life", {"kept": KEPT, "life": LIFE}
    )
