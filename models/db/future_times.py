"""Correct stored times that are too far in the future, after the database's clock was ahead for a while."""

from datetime import timedelta

from models.db.session import Question

LONGEST_LEASE = timedelta(minutes=2)
LONGEST_REST = timedelta(hours=2)
"""The longest pause after Discord has refused a role or a guild, or a webhook a delivery, or a reading was unknown."""
LONGEST_WAIT = timedelta(hours=6)
"""The longest that Discord may delay one role change."""
A_DAY = timedelta(days=1)
"""The longest quarantine and truce, how far ahead the bot may plan to identify, and how long a challenge is valid.

So long, too, a former secret of a webhook signs beside the new one.
"""
LONGEST_CODE = timedelta(minutes=10)
"""How long a code for a hand-over is valid, and a sign-in that has not returned from Discord."""
LONGEST_SESSION = timedelta(days=7)
LONGEST_TOKEN = timedelta(days=366)
"""How long an API token is valid at most."""
SOON = timedelta(minutes=1)


def _ordered(table: str, order: str, values: str, which: str) -> str:
    """Return the statement that sets these values in the rows that match, and locks these in an order.

    `order` are columns by which a row is found; a statement over several rows elsewhere locks them in that order too.
    """
    rows = f"SELECT {order} FROM {table} WHERE {which} ORDER BY {order} FOR UPDATE"
    return f"UPDATE {table} SET {values} WHERE ({order}) IN ({rows})"


_GRANT = '"grant"', "server_id, discord_id, role_id"
_BREAKER = "breaker", "server_id, role_id"
_TODAY = "CAST((now() + :soon) AT TIME ZONE 'UTC' AS date)"

# Release claims and leases, end pauses, and treat readings with a future time as outdated.
_CORRECTIONS = (
    _ordered("due", "key", "claimed_until = NULL, claimed_by = NULL", "claimed_until > now() + :lease"),
    # Other members than those who are tried again may wait for the end of a grace time; the sweep reaches them.
    _ordered("due", "key", "due_at = now()", "(attempts > 0 OR priority > 0) AND due_at > now() + :rest + :soon"),
    _ordered("cursor", "chain", "owner = NULL, owned_until = NULL", "owned_until > now() + :lease"),
    # Until then, Health would not see that nobody follows the chain.
    _ordered("cursor", "chain", "updated_at = now()", "updated_at > now() + :soon"),
    _ordered(*_GRANT, "next_at = now()", "state IN ('giving', 'taking') AND next_at > now() + :wait"),
    # The age of such a removal is not known, so it is decided again.
    _ordered(
        *_GRANT, "intended_at = now() - :day, next_at = now()", "state = 'taking' AND intended_at > now() + :soon"
    ),
    _ordered(*_GRANT, "no_since = now()", "no_since > now() + :soon"),
    # A role that is lost is given again once a rule is newer than its loss; a membership is compared with the grant.
    _ordered(
        *_GRANT,
        "created_at = LEAST(created_at, now()), updated_at = LEAST(updated_at, now())",
        "created_at > now() + :soon OR updated_at > now() + :soon",
    ),
    _ordered("rule", "id", "created_at = now()", "created_at > now() + :soon"),
    # An approval holds for a day from its time, and ends with changes after it.
    _ordered(*_BREAKER, "approved_at = now() - :day", "approved_at > now() + :soon"),
    _ordered(
        *_BREAKER,
        "tripped_at = LEAST(tripped_at, now()), "
        "dismissed_at = CASE WHEN dismissed_at > now() THEN now() ELSE dismissed_at END",
        "tripped_at > now() + :soon OR dismissed_at > now() + :soon",
    ),
    "UPDATE unanswered SET at = now() WHERE at > now() + :soon",
    "UPDATE role_refusal SET next_at = now() WHERE next_at > now() + :rest",
    "UPDATE guild_refusal SET rests_until = now() WHERE rests_until > now() + :rest",
    "UPDATE guild_refusal SET began_at = now() WHERE began_at > now() + :soon",
    "DELETE FROM refusal WHERE minute > now() + :soon",
    "DELETE FROM rate_share WHERE seen_at > now() + :soon",
    "UPDATE quarantine SET until = now() WHERE until > now() + :day",
    "UPDATE identify SET at = now() WHERE at > now() + :day",
    "DELETE FROM gateway_limit WHERE read_at > now() + :soon",
    "UPDATE shard SET holder = NULL WHERE held_until > now() + :lease",
    "DELETE FROM bot_process WHERE seen_at > now() + :soon",
    "UPDATE ended_delegation SET ended_at = now() WHERE ended_at > now() + :soon",
    # Of two members with a claim on a token, the later one would have it.
    "UPDATE ended_delegation SET first_seen_at = now() WHERE first_seen_at > now() + :soon",
    "UPDATE delegation SET first_seen_at = now() WHERE first_seen_at > now() + :soon",
    "UPDATE wallet SET created_at = now() WHERE created_at > now() + :soon",
    _ordered("delegation_read", "chain, delegate", "read_at = to_timestamp(0)", "read_at > now() + :soon"),
    "UPDATE token SET updated_at = now() - :day WHERE updated_at > now() + :soon",
    "UPDATE webhook SET claimed_until = NULL, claimed_by = NULL WHERE claimed_until > now() + :lease + :soon",
    "UPDATE webhook SET next_at = now() WHERE next_at > now() + :rest",
    # Webhooks and counts have their turns in the order of these times, so until then the server would be the last.
    "UPDATE webhook SET served_at = now() WHERE served_at > now() + :soon",
    "UPDATE census_turn SET at = now() WHERE at > now() + :soon",
    # Deliveries from before this time are not sent.
    "UPDATE webhook SET created_at = now() WHERE created_at > now() + :soon",
    "UPDATE webhook_delivery SET next_at = now(), created_at = LEAST(created_at, now()) WHERE state = 'waiting' "
    "AND (created_at > now() + :soon OR next_at > now() + :rest + :soon)",
    "UPDATE census SET holder = NULL, held_until = NULL WHERE held_until > now() + :lease + :soon",
    "UPDATE census SET next_at = now() WHERE next_at > now() + :rest",
    "UPDATE census SET counted_at = now() - :day WHERE counted_at > now() + :soon",
    # Until then, the rules of the collection would be counted again every hour.
    "UPDATE census SET moved_at = now() WHERE moved_at > now() + :soon",
    "UPDATE reach SET created_at = CASE state WHEN 'counting' THEN now() ELSE now() - :day END "
    "WHERE created_at > now() + :soon",
    "UPDATE alert SET next_at = now() WHERE next_at > now() + :rest",
    _ordered("rival_move", "id", "next_at = now()", "next_at > now() + :rest"),
    # The next one would begin a truce.
    _ordered("rival_move", "id", "at = now() - :day", "at > now() + :soon"),
    "UPDATE truce SET until = now() + :day WHERE until > now() + :day + :soon",
    # Messages of a move wait for its end, or for the next attempt.
    "UPDATE server_move SET messages_at = now() WHERE messages_at > now() + :rest AND messages_at <> until",
    # Until then, its roles would not be handed over, and its undo would give back nothing that was taken since.
    "UPDATE server_move SET begins_at = now(), begun_at = now() WHERE begun_at > now() + :soon",
    "UPDATE server_move SET approved_at = now() - :day WHERE approved_at > now() + :soon",
    # Until then, the number of the same day would not be counted again, and one of a later day would be the newest.
    "UPDATE move_count SET at = now() WHERE at > now() + :soon",
    f"DELETE FROM move_count WHERE day > {_TODAY}",
    "UPDATE reach_day SET at = now() WHERE at > now() + :soon",
    f"DELETE FROM reach_day WHERE day > {_TODAY}",
    # The bot would read the same people, or the same list of members, over and over until then.
    "UPDATE schedule SET started_at = now() WHERE started_at > now() + :soon",
    "UPDATE role_watch SET at = now() WHERE at > now() + :soon",
    # What was learnt later replaces these only if its time is later.
    "UPDATE provider_state SET checked_at = now(), since = LEAST(since, now()), "
    "ok_at = CASE WHEN ok_at > now() THEN now() ELSE ok_at END WHERE checked_at > now() + :soon",
    _ordered(
        "member",
        "server_id, discord_id",
        "seen_at = LEAST(seen_at, now()), left_at = CASE WHEN left_at > now() THEN now() ELSE left_at END",
        "seen_at > now() + :soon OR left_at > now() + :soon",
    ),
    "UPDATE access SET checked_at = now() - :day WHERE checked_at > now() + :soon",
    # What somebody can prove or open something with is valid no longer than its kind may be.
    "DELETE FROM handover WHERE expires_at > now() + :code + :soon",
    "DELETE FROM sign_in WHERE expires_at > now() + :code + :soon",
    "UPDATE api_token SET created_at = LEAST(created_at, now()), expires_at = LEAST(expires_at, now() + :token), "
    "used_at = CASE WHEN used_at > now() THEN now() ELSE used_at END "
    "WHERE created_at > now() + :soon OR expires_at > now() + :token + :soon OR used_at > now() + :soon",
    "UPDATE webhook SET old_until = now() + :day WHERE old_until > now() + :day + :soon",
    "UPDATE session SET created_at = LEAST(created_at, now()), seen_at = LEAST(seen_at, now()), "
    "expires_at = LEAST(expires_at, now() + :session) "
    "WHERE created_at > now() + :soon OR seen_at > now() + :soon OR expires_at > now() + :session + :soon",
    # A transaction from before a challenge does not prove it, and when it was made is not known.
    _ordered(
        "challenge",
        "id",
        "created_at = CASE WHEN created_at > now() THEN now() - :day ELSE created_at END, "
        "expires_at = LEAST(expires_at, now() + :day), "
        "screen_at = CASE WHEN screen_at > now() THEN now() ELSE screen_at END",
        "created_at > now() + :soon OR expires_at > now() + :day + :soon OR screen_at > now() + :soon",
    ),
)


def corrections() -> list[Question]:
    """Return the statements that correct every stored time that no correct clock could have set.

    Each is independent of the others, and locks rows of one table in the order in which others lock several of them.
    """
    values = {
        "lease": LONGEST_LEASE, "rest": LONGEST_REST, "wait": LONGEST_WAIT, "day": A_DAY, "code": LONGEST_CODE,
        "session": LONGEST_SESSION, "token": LONGEST_TOKEN, "soon": SOON,
    }  # fmt: skip
    return [
        (statement, {name: value for name, value in values.items() if f":{name}" in statement})
        for statement in _CORRECTIONS
    ]
