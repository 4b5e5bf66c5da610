"""Export all data about one person as one document, without secrets."""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence

from sqlalchemy import text

from locales import N_, _
from locales.stored_texts import with_hidden
from models import now
from models.db.session import AsyncSession
from services.core.actors import Actor
from services.rules.rule_rows import newest_role_name
from settings import settings

ROWS_A_PIECE = 20
"""Rows that are in memory at a time."""
NOT_IN_HERE = N_(
    "Session ids, the codes of wallet challenges and Discord's access tokens are secrets, and of sessions and tokens "
    "not even we have a readable copy; they are not in this file."
)

_SECRET_VALUES = frozenset({"code", "amount"})
"""The values in a challenge's note that would answer the challenge."""

# Servers where the bot only searched for the person and never saw them. They belong to others, so they are counted and
# not named.
_ONLY_SEARCHED = """
    m.left_at IS NOT NULL AND m.met_at IS NULL AND m.avatar IS NULL AND m.roles = '{}'
    AND NOT EXISTS (SELECT 1 FROM event e WHERE e.server_id = m.server_id AND e.subject = m.discord_id)
"""
# The query for each part of the document; PostgreSQL returns rows as JSON, with integers as text if they can exceed a
# JSON number.
_PARTS = {
    "account": """
        SELECT id, discord_id AS "discordId", username, global_name AS "displayName", avatar, email, connected,
               language, access_token IS NOT NULL AS "discordTokensStored",
               token_expires_at AS "discordTokensExpireAt", created_at AS "createdAt", updated_at AS "updatedAt"
        FROM "user" WHERE id = :user
    """,
    "sessions": """
        SELECT user_agent AS "userAgent", created_at AS "createdAt", seen_at AS "seenAt", expires_at AS "expiresAt"
        FROM session WHERE user_id = :user ORDER BY created_at
    """,
    "apiTokens": """
        SELECT s.discord_id AS "serverId", s.name AS server, t.name, t.prefix, t.scopes, t.created_at AS "createdAt",
               t.used_at AS "usedAt", t.expires_at AS "expiresAt"
        FROM api_token t JOIN server s ON s.id = t.server_id WHERE t.user_id = :user ORDER BY t.id
    """,
    "signInsUnderWay": """
        SELECT purpose, return_path AS "returnPath", expires_at AS "expiresAt" FROM sign_in WHERE user_id = :user
    """,
    "wallets": """
        SELECT id, family, address, NULLIF(chain, '') AS "onlyOn", method, evidence - 'movedFrom' AS evidence,
               created_at AS "createdAt"
        FROM wallet WHERE user_id = :user ORDER BY id
    """,
    "walletHandovers": """
        SELECT wallet_id AS "walletId", created_at AS "createdAt", expires_at AS "expiresAt"
        FROM handover WHERE user_id = :user
    """,
    "walletChallenges": """
        SELECT id, family, address, created_at AS "createdAt", expires_at AS "expiresAt", used_at AS "usedAt",
               screen_at AS "lastAskedAt", seen AS "transactionSeen", note
        FROM challenge WHERE user_id = :user ORDER BY id
    """,
    "walletTrails": """
        SELECT t.challenge_id AS "challengeId", t.chain, CAST(t.nonce AS text) AS nonce, CAST(t.block AS text) AS block,
               t.contract, t.scanned AS "blocksRead", t.lost
        FROM trail t JOIN challenge c ON c.id = t.challenge_id WHERE c.user_id = :user ORDER BY t.challenge_id, t.chain
    """,
    "walletHoldings": """
        SELECT o.chain, o.contract, o.address, CAST(o.amount AS text) AS amount, CAST(o.block AS text) AS block,
               o.source, o.observed_at AS "observedAt"
        FROM observation o JOIN wallet w ON w.address = o.address AND w.chain IN ('', o.chain) WHERE w.user_id = :user
        ORDER BY o.chain, o.contract, o.address
    """,
    "walletReadings": """
        SELECT d.chain, d.address, d.server_id AS "serverId", CAST(s.block AS text) AS block, s.source,
               s.observed_at AS "observedAt", s.contracts
        FROM surveyed d JOIN survey s ON s.id = d.survey_id
        JOIN wallet w ON w.address = d.address AND w.chain IN ('', d.chain)
        JOIN member m ON m.server_id = d.server_id AND m.discord_id = :who
        WHERE w.user_id = :user ORDER BY d.chain, d.address, d.server_id
    """,
    "walletTokens": """
        SELECT o.chain, o.contract, o.address, o.scope, CAST(o.amount AS text) AS amount, o.at_least AS "atLeast",
               o.reason, CAST(o.block AS text) AS block, o.source, o.observed_at AS "observedAt"
        FROM tally o JOIN wallet w ON w.address = o.address AND w.chain IN ('', o.chain) WHERE w.user_id = :user
        ORDER BY o.chain, o.contract, o.address, o.scope
    """,
    "walletTokensToLookAt": """
        SELECT o.chain, o.contract, o.address, o.ids, o.searched, o.gone, o.updated_at AS "updatedAt"
        FROM token_trail o JOIN wallet w ON w.address = o.address AND w.chain IN ('', o.chain) WHERE w.user_id = :user
        ORDER BY o.chain, o.contract, o.address
    """,
    "walletTransfersSeen": """
        SELECT g.chain, g.address, CAST(g.block AS text) AS block, g.seen_at AS "seenAt"
        FROM sighting g JOIN wallet w ON w.address = g.address AND w.chain IN ('', g.chain)
        WHERE w.user_id = :user ORDER BY g.chain, g.address
    """,
    "walletTransfersPaused": """
        SELECT q.chain, q.address, q.reason, q.since, q.until, q.ended_at AS "endedAt"
        FROM quarantine q JOIN wallet w ON w.address = q.address AND w.chain IN ('', q.chain)
        WHERE w.user_id = :user AND q.kind = 'wallets' ORDER BY q.chain, q.address
    """,
    "walletDelegations": """
        SELECT d.chain, d.delegate AS address, d.vault, d.contract, d.token_id AS "tokenId",
               CAST(d.amount AS text) AS amount, d.first_seen_at AS "firstSeenAt"
        FROM delegation d JOIN wallet w ON w.address = d.delegate AND w.chain IN ('', d.chain) WHERE w.user_id = :user
        ORDER BY d.chain, d.delegate, d.vault, d.contract, d.token_id
    """,
    "walletDelegationsEnded": """
        SELECT d.chain, d.delegate AS address, d.vault, d.contract, d.token_id AS "tokenId",
               d.first_seen_at AS "firstSeenAt", d.ended_at AS "endedAt"
        FROM ended_delegation d JOIN wallet w ON w.address = d.delegate AND w.chain IN ('', d.chain)
        WHERE w.user_id = :user ORDER BY d.chain, d.delegate, d.vault, d.contract, d.token_id
    """,
    "walletDelegationsRead": """
        SELECT d.chain, d.delegate AS address, CAST(d.block AS text) AS block, d.read_at AS "readAt", d.fault
        FROM delegation_read d JOIN wallet w ON w.address = d.delegate AND w.chain IN ('', d.chain)
        WHERE w.user_id = :user
        ORDER BY d.chain, d.delegate
    """,
    "memberships": f"""
        SELECT s.discord_id AS "serverId", s.name AS server, m.name AS "shownAs", m.avatar, m.roles AS "roleIds",
               m.pending, m.left_at AS "leftAt", m.seen_at AS "seenAt",
               COALESCE(c.use_wallets, true) AS "useWallets", COALESCE(c.share_wallets, false) AS "shareWallets",
               (SELECT w.address FROM wallet w WHERE w.id = c.payout_wallet_id) AS "payoutAddress"
        FROM (SELECT m.*, {_ONLY_SEARCHED} AS searched FROM member m WHERE m.discord_id = :who) m
        FULL JOIN (SELECT * FROM member_choice WHERE user_id = :user) c USING (server_id)
        JOIN server s ON s.id = server_id WHERE m.searched IS NOT TRUE OR c.user_id IS NOT NULL ORDER BY s.name, s.id
    """,
    "serversSearchedForYou": f"""
        SELECT count(*) AS servers, max(m.seen_at) AS "searchedAt" FROM member m
        WHERE m.discord_id = :who AND {_ONLY_SEARCHED} HAVING count(*) > 0
    """,
    "countedAsVerified": """
        SELECT s.discord_id AS "serverId", s.name AS server, v.proved_on AS "provedOn"
        FROM verified_person v JOIN server s ON s.id = ANY(v.servers) WHERE v.discord_id = :who ORDER BY s.name, s.id
    """,
    "countsToCome": """
        SELECT count(*) AS notes FROM verified_stale WHERE discord_id = :who HAVING count(*) > 0
    """,
    "serversYouRun": """
        SELECT s.discord_id AS "serverId", s.name AS server, COALESCE(a.owner, true) AS owner,
               a.checked_at AS "checkedAt"
        FROM server s LEFT JOIN access a ON a.server_id = s.id AND a.discord_id = :who
        WHERE a.discord_id IS NOT NULL OR s.owner_id = :who ORDER BY s.name, s.id
    """,
    "rulesYouMade": """
        SELECT r.id, s.name AS server, r.name, r.created_at AS "createdAt"
        FROM rule r JOIN server s ON s.id = r.server_id WHERE r.created_by = :who ORDER BY r.id
    """,
    "protectedIn": """
        SELECT name AS server FROM server WHERE CAST(:who AS text) = ANY(protected_members) ORDER BY name, id
    """,
    "removalsYouDecided": """
        SELECT s.name AS server, b.role_id AS "roleId", b.approved_at AS "approvedAt", b.dismissed_at AS "dismissedAt"
        FROM breaker b JOIN server s ON s.id = b.server_id WHERE :who IN (b.approved_by, b.dismissed_by)
        ORDER BY b.tripped_at
    """,
    "roles": f"""
        SELECT s.discord_id AS "serverId", s.name AS server, g.role_id AS "roleId",
               {newest_role_name("g")} AS role,
               g.state, g.rule_ids AS "ruleIds", g.evidence, g.no_since AS "noSince", g.created_at AS "createdAt",
               g.updated_at AS "updatedAt"
        FROM "grant" g JOIN server s ON s.id = g.server_id WHERE g.discord_id = :who ORDER BY s.name, g.id
    """,
    "rolesOthersMoved": """
        SELECT s.discord_id AS "serverId", s.name AS server, r.role_id AS "roleId", r.taken, r.at, r.actor_name AS "by"
        FROM rival_move r JOIN server s ON s.id = r.server_id WHERE r.discord_id = :who ORDER BY r.id
    """,
    "rolesLeftAlone": """
        SELECT s.discord_id AS "serverId", s.name AS server, t.role_id AS "roleId", t.since, t.until
        FROM truce t JOIN server s ON s.id = t.server_id WHERE t.discord_id = :who ORDER BY s.name, t.role_id
    """,
    "rolesYouMoved": """
        SELECT s.discord_id AS "serverId", s.name AS server, r.role_id AS "roleId", r.taken, r.at
        FROM rival_move r JOIN server s ON s.id = r.server_id WHERE r.actor_id = :who ORDER BY r.id
    """,
    "reportsAboutYou": """
        SELECT s.discord_id AS "serverId", s.name AS server, a.title, a.text, a.began_at AS "beganAt",
               a.ended_at AS "endedAt"
        FROM alert a JOIN server s ON s.id = a.server_id
        WHERE starts_with(a.key, 'rival:') AND split_part(a.key, ':', 3) = :who ORDER BY a.id
    """,
    "payoutAddressDownloaded": """
        SELECT s.discord_id AS "serverId", s.name AS server, p.at
        FROM payout_listing p JOIN server s ON s.id = p.server_id WHERE p.user_id = :user ORDER BY p.id
    """,
    "payoutListsYouDownloaded": """
        SELECT DISTINCT s.discord_id AS "serverId", s.name AS server, p.at
        FROM payout_listing p JOIN server s ON s.id = p.server_id WHERE p.actor = :who ORDER BY p.at
    """,
    "looksToCome": """
        SELECT s.name AS server, d.due_at AS "dueAt" FROM due d
        JOIN member m ON d.kind = 'member' AND d.key = m.server_id || ':' || m.discord_id
        JOIN server s ON s.id = m.server_id WHERE m.discord_id = :who ORDER BY d.due_at
    """,
    "notices": """
        SELECT kind, data, created_at AS "createdAt", told_at AS "toldAt"
        FROM notice WHERE discord_id = :who ORDER BY id
    """,
    "events": """
        SELECT e.at, e.kind, s.name AS server, e.actor, e.subject, e.role_id AS "roleId", e.rule_id AS "ruleId", e.data
        FROM event e LEFT JOIN server s ON s.id = e.server_id
        WHERE e.subject = :who OR e.actor = :who ORDER BY e.id
    """,
}  # fmt: skip


async def export(db: AsyncSession, actor: Actor) -> AsyncGenerator[str]:
    """Yield the text of one JSON document with a part for each kind of data about the person; times are ISO 8601.

    It comes in pieces of at most ROWS_A_PIECE rows, because a whole document can be larger than the memory: a wallet
    has a row for every contract that a rule names, each with up to thousands of tokens.
    """
    head = {"product": settings().product_name, "exportedAt": now().isoformat(), "notInHere": _(NOT_IN_HERE)}
    yield json.dumps(head, ensure_ascii=False).removesuffix("}")
    values = {"user": actor.user_id, "who": actor.discord_id}
    for part, statement in _PARTS.items():
        before, between, end = (', "{}": ', "", "") if part == "account" else (', "{}": [', ",\n", "]")
        yield before.format(part)
        begun = False
        async for rows in _pieces(db, statement, values):
            told = map(_without_secrets, rows) if part == "walletChallenges" else rows
            yield (between if begun else "") + between.join(told)
            begun = True
        yield end if begun or end else "null"
    yield "}"


async def _pieces(db: AsyncSession, statement: str, values: Mapping[str, object]) -> AsyncGenerator[Sequence[str]]:
    """Yield the rows as JSON texts, ROWS_A_PIECE at a time, read by a cursor of the database."""
    connection = await db.connection()
    query = text(f"SELECT CAST(row_to_json(part) AS text) FROM ({statement}) part")
    async with connection.stream(query, values, execution_options={"yield_per": ROWS_A_PIECE}) as rows:
        async for piece in rows.scalars().partitions(ROWS_A_PIECE):
            yield piece


def _without_secrets(challenge: str) -> str:
    row = json.loads(challenge)
    return json.dumps(row | {"note": with_hidden(row["note"], _SECRET_VALUES)}, ensure_ascii=False)
