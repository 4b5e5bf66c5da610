"""When to reconcile members again whom nodes could not serve, because a node lags or a read had no room for them."""

from datetime import datetime, timedelta

from gateways.chains.catalogue import CHAINS
from gateways.chains.token_sheet import IN_TURN
from gateways.evm.rpc.node import stale_seconds
from services.core.answer import Answer
from services.engine.cases import ASKED_FOR
from services.engine.decide import Action
from services.engine.reconcile_outcome import CaseOutcome

LAG_SECONDS, LAG_BLOCKS = 15.0, 3
"""Usual maximum age of a node's newest block: so many seconds, plus so many block times of the chain."""
NEXT_TURN_SECONDS = 5.0
"""Seconds until the next reconcile of members for whom a read had no room."""


def after_lag(item: CaseOutcome, now: datetime) -> None:
    """If a member waits for a role in vain, schedule another reconcile for when no node can still lag.

    Answers at a recent block of a followed chain need none, because lagging nodes are not believed there.
    """
    case = item.case
    if case.claim.priority not in ASKED_FOR or not case.wallets:
        return
    ours = {grant.role_id for grant in case.grants}
    if not any(one.action is Action.NONE and not {one.role_id} & (ours | case.roles) for one in item.decisions):
        return
    pauses = [stale_seconds(CHAINS[chain]) for chain in case.wants if _may_lag(item, chain, now)]
    if pauses:
        item.calm, item.recheck_at = False, now + timedelta(seconds=max(pauses))


def for_next_turn(item: CaseOutcome) -> None:
    """Schedule an early reconcile of a member for whom a read had no room: the next read has room for others."""
    unknown = (one for some in item.readings.values() for one in some if one.answer is Answer.UNKNOWN)
    if item.doubtful and any(one.reason == IN_TURN for one in unknown):
        item.again_in = NEXT_TURN_SECONDS


def _may_lag(item: CaseOutcome, chain: str, now: datetime) -> bool:
    case = item.case
    if chain not in case.followed:
        return True
    answers = item.answers.get((case.claim.server_id, chain))
    if answers is None or answers.as_of is None:
        return False
    usual = timedelta(seconds=LAG_SECONDS + LAG_BLOCKS * CHAINS[chain].block_seconds)
    return now - answers.as_of > usual
