"""Check challenges on each chain apart from the others, so that a slow or silent chain delays no proof elsewhere."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from gateways import Gateways
from gateways.transport.errors import ProviderError
from services.runtime.task_cancellation import outcomes
from services.wallets import proof_watch
from services.wallets.watched_challenge import OpenChallenge

PATIENCE = 12.0
"""Seconds that one check waits for what a chain's nodes say; the next check reads later answers."""
FAMILIES = ("evm", "solana")
Store = Callable[[Sequence[OpenChallenge]], Awaitable[None]]
"""What stores challenges of which nothing remains to be read."""


async def _nothing(_checked: Sequence[OpenChallenge]) -> None:
    """Leave the findings to the caller."""


async def check_challenges(outside: Gateways, watched: Sequence[OpenChallenge], patience: float = PATIENCE) -> None:
    """Check all these challenges on every chain of their families, and end early once all are proved.

    Leaves the findings in `watched`. A chain that fails changes nothing.
    """
    tasks = waiting = {
        asyncio.create_task(check_chain(outside, chain, theirs, patience))
        for family in FAMILIES
        if (theirs := [one for one in watched if one.family == family])
        for chain in proof_watch.chains_of(outside, family)
    }
    try:
        while waiting and not all(map(proof_watch.is_proved, watched)):
            ended, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                task.result()
    finally:
        await outcomes(*tasks)


async def check_chain(
    outside: Gateways, chain: str, watched: Sequence[OpenChallenge], patience: float = PATIENCE, store: Store = _nothing
) -> None:
    """Check challenges on one chain: one request to it, and more only for accounts that sent something.

    Leaves the findings in `watched`. `store` gets each challenge once, as soon as its check has ended, whatever the
    checks of others still wait for. What is not judged when this is cancelled is found again by the next check.
    """
    before = {one.challenge_id: one.points.get(chain) for one in watched}
    unfinished = {one.challenge_id: one for one in watched}
    try:
        try:
            async with asyncio.timeout(patience):
                if chain == "solana":
                    await proof_watch.follow_solana(outside, watched)
                else:
                    await proof_watch.follow_evm(outside, chain, watched)
        except (ProviderError, TimeoutError):
            for one in watched:
                one.unreachable.add(chain)
        to_judge = [one for one in watched if one.family == "evm" and _has_something(one, chain)]
        later = {one.challenge_id: one for one in to_judge}
        await store([one for one in watched if one.challenge_id not in later])
        unfinished = later

        async def judge_and_store(one: OpenChallenge) -> None:
            async with one.judging:
                await proof_watch.judge_on(outside, one, chain, before[one.challenge_id])
                await store([one])
            del later[one.challenge_id]

        await proof_watch.by_person(to_judge, judge_and_store)
    except asyncio.CancelledError:
        for one in unfinished.values():
            proof_watch.move_back(one, chain, before[one.challenge_id])
        raise


def _has_something(one: OpenChallenge, chain: str) -> bool:
    """Return whether a transaction on this chain is to be judged for the challenge."""
    return (one.seen is not None and one.seen.chain == chain) or any(found.chain == chain for found in one.candidates)
