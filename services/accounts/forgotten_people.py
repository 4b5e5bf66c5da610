"""People whose data was deleted lately, so that a later read of a server's audit log does not store their names again.

They are remembered as a keyed digest of their Discord id, from which the id cannot be found without our secret.
"""

from collections.abc import Collection
from datetime import timedelta

from models.db.session import AsyncSession
from services.accounts import encryption

DIGEST_DAYS = 3
REMEMBERED_FOR = timedelta(days=DIGEST_DAYS)
"""Longer than the greatest age of an entry that is read (twice `LOOK_BACK` in `services/roles/rival_names.py`)."""
DIGEST = "#"
"""Begins the digests in `farewell.discord_id`; a Discord id has only digits."""


async def remember(db: AsyncSession, discord_id: str, pseudonym: str) -> None:
    """Remember a person of whom nothing is stored any more, for REMEMBERED_FOR."""
    await db.execute(
        "INSERT INTO farewell (discord_id, pseudonym, asked_at, renamed_at) VALUES (:digest, :pseudonym, now(), "
        "now()) ON CONFLICT (discord_id) DO UPDATE SET pseudonym = EXCLUDED.pseudonym, asked_at = now()",
        {"digest": _digests(discord_id)[0], "pseudonym": pseudonym},
    )


async def pseudonyms(db: AsyncSession, people: Collection[str]) -> dict[str, str]:
    """Return the pseudonyms of those of these people who deleted their data lately and have not returned."""
    keys = {key: who for who in people for key in (who, *_digests(who))}
    rows = await db.execute(
        "SELECT discord_id, pseudonym FROM farewell WHERE discord_id = ANY(CAST(:keys AS text[]))",
        {"keys": sorted(keys)},
    )
    found = {keys[str(key)]: str(pseudonym) for key, pseudonym in rows.all()}
    back = await db.execute(
        'SELECT discord_id FROM "user" WHERE discord_id = ANY(CAST(:people AS text[]))', {"people": sorted(found)}
    )
    returned = {str(who) for (who,) in back.all()}
    return {who: pseudonym for who, pseudonym in found.items() if who not in returned}


async def clear(db: AsyncSession) -> None:
    """Delete the digests that are no longer needed."""
    await db.execute(
        "DELETE FROM farewell WHERE starts_with(discord_id, :digest) AND asked_at < now() - :kept",
        {"digest": DIGEST, "kept": REMEMBERED_FOR},
    )


def _digests(discord_id: str) -> list[str]:
    return [DIGEST + digest for digest in encryption.digests(discord_id)]
