"""Warnings to members about to lose a role, shown at their next interaction during the grace time."""

from collections.abc import Iterable
from datetime import datetime

from sqlmodel import col, select

from models import Grant, Notice
from services.core.queue import Claim
from services.engine.decide import Decision
from services.engine.reconcile_outcome import CaseOutcome

KIND = "role.ending"

STILL_RUNS = (
    select(Grant.role_id)
    .where(
        Grant.server_id == Notice.server_id,
        Grant.discord_id == Notice.discord_id,
        Grant.role_id == col(Notice.data)["roleId"].as_string(),
        col(Grant.state).in_(("held", "giving")),
        col(Grant.no_since).is_not(None),
    )
    .exists()
)
"""Condition: the grace time of the warning is still running."""


def warnings(pairs: Iterable[tuple[CaseOutcome, Decision]]) -> list[Notice]:
    """Return the warnings for grace times that begin with these decisions."""
    return [
        _warning(item.case.claim, decision.role_id, decision.due_at)
        for item, decision in pairs
        # Without `due_at` an open move keeps the role, so nothing is taken. A role that another replaces is not lost.
        if decision.due_at is not None
        and not decision.replaced
        and (grant := item.case.grant_of(decision.role_id)) is not None
        and grant.no_since is None
    ]


def _warning(claim: Claim, role_id: str, due_at: datetime) -> Notice:
    # The previous version reads `until`.
    until = f"{due_at:%-d %B %Y at %H:%M} UTC"
    return Notice(
        discord_id=claim.discord_id, server_id=claim.server_id, kind=KIND,
        data={"roleId": role_id, "until": until, "at": due_at.isoformat()},
    )  # fmt: skip
