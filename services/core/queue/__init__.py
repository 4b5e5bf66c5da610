"""The queue of members to reconcile: mark them as due, claim them in batches, complete or reschedule claims."""

from services.core.queue.claims import (
    Claim,
    check_unchanged,
    claim,
    complete,
    postpone,
    refresh_statistics,
    release,
    release_leases,
    renew,
    reschedule,
    retry_later,
    still_ours,
)
from services.core.queue.mark_due import (
    AGAIN,
    CHANGED,
    CHANNEL,
    JOINED,
    OF_SERVER,
    SEEN,
    SWEPT,
    WAITING,
    invalidate_running,
    mark_all,
    mark_claimants,
    mark_holders,
    mark_listed,
    mark_member,
    mark_members,
    mark_other_delegates,
    mark_people,
    mark_server,
    mark_servers,
    mark_swept,
)
from services.core.queue.removals import (
    IS_QUEUED,
    NEVER_GIVEN,
    NOW_GIVEN,
    call_off_removals_from,
    call_off_where,
    in_order_of_key,
    locking_in_order,
)

__all__ = [
    "AGAIN", "CHANGED", "CHANNEL", "IS_QUEUED", "JOINED", "NEVER_GIVEN", "NOW_GIVEN", "OF_SERVER", "SEEN", "SWEPT",
    "WAITING", "Claim", "call_off_removals_from", "call_off_where", "check_unchanged", "claim", "complete",
    "in_order_of_key", "invalidate_running", "locking_in_order", "mark_all", "mark_claimants", "mark_holders",
    "mark_listed", "mark_member", "mark_members", "mark_other_delegates", "mark_people", "mark_server", "mark_servers",
    "mark_swept", "postpone", "refresh_statistics", "release", "release_leases", "renew", "reschedule", "retry_later",
    "still_ours",
]  # fmt: skip
