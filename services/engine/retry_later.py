"""When members are looked at again whom nodes could not serve yet: one lags behind, or there was no room for them."""

from datetime import datetime, timedelta

from gateways.chains.catalogue import CHAINS
from gateways.chains.token_sheet import IN_TURN
from gateways.evm.rpc.node import stale_seconds
from services.core.answer import Answer
from services.engine.cases import ASKED_FOR
from services.engine.outcome import Looked
from services.engine.policy import Move

LAG_SECONDS, LAG_BLOCKS = 15.0, 3
"""How old a newest block usually is at the most: seconds, and block times of the chain besides."""
NEXT_TURN_SECONDS = 5.0
"""Seconds until the next look at whom there was no room for."""


def once_more(item: Looked, now: datetime) -> None:
    """Have somebody who waits for a role in vain looked at again when no node can lag behind any more.

    Not where the answers are of new blocks of chains that are followed: then no node is believed that lags.
    """
    case = item.case
    if case.claim.priority not in ASKED_FOR or not case.wallets:
        return
    ours = {grant.role_id for grant in case.grants}
    if not any(one.move is Move.NONE and not {one.role_id} & (ours | case.roles) for one in item.decisions):
        return
    pauses = [stale_seconds(CHAINS[chain]) for chain in case.wants if _may_lag(item, chain, now)]
    if pauses:
        item.calm, item.once_more_at = False, now + timedelta(seconds=max(pauses))


def in_turn(item: Looked) -> None:
    """Have somebody for whom there was no room looked at soon: each read has room for others."""
    unknown = (one for some in item.readings.values() for one in some if one.answer is Answer.UNKNOWN)
    if item.doubtful and any((one.reason or "").startswith(IN_TURN) for one in unknown):
        item.again_in = NEXT_TURN_SECONDS


def _may_lag(item: Looked, chain: str, now: datetime) -> bool:
    case = item.case
    if chain not in case.followed:
        return True
    answers = item.answers.get((case.claim.server_id, chain))
    if answers is None or answers.as_of is None:
        return False
    usual = timedelta(seconds=LAG_SECONDS + LAG_BLOCKS * CHAINS[chain].block_seconds)
    return now - answers.as_of > usual
