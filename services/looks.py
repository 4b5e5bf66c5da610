"""A look at due members who were claimed: read what they hold, decide, and write the decisions down."""

import logging
from collections import Counter
from collections.abc import Sequence

from gateways import Gateways
from models import reading, release, transaction
from models.session import AsyncSession, NotSo
from services import cases, decisions, delegations, due, ledger, request_ids, stored
from services.due import Claim
from services.looked import Round

log = logging.getLogger("holdfast.services.looks")


async def look_at(db: AsyncSession, outside: Gateways, worker: str, claims: Sequence[Claim]) -> None:
    """Look at members whom the worker has claimed; what the chains do not tell leaves them due.

    `db` is for questions that stand alone, and nobody holds its connection while somebody outside is waited for.
    """
    found = await stored.read(db, claims)
    if stale := await cases.delegations_to_read(db, claims, found.rules):
        await release(db)
        fetched = await delegations.read(outside, stale)
        async with transaction() as writing:
            await delegations.remember(writing, fetched)
        found = await stored.read(db, claims)
    batch, wanted = await decisions.prepared(db, claims, found)
    await release(db)
    done = await decisions.look(outside, batch, wanted, found.at)
    moves = await _settle(worker, done)
    for request, members in Counter(claim.request_id for claim in claims if claim.request_id).items():
        with request_ids.under(request):
            log.info("looked at %s of the members whom it made due; %s roles of the batch move", members, moves)


async def _settle(worker: str, done: Round) -> int:
    """Write down what came of a look; tells how many roles are to be given or taken.

    That all claims are still ours is made sure of along with the writing. Only where it is not so is asked which are.
    """
    claims = [item.case.claim for item in done.looked]
    ours = {claim.key for claim in claims}
    while True:
        try:
            async with transaction() as db:
                due.hold(db, worker, [claim for claim in claims if claim.key in ours])
                return await ledger.settle(db, worker, done, ours)
        except NotSo:
            async with reading() as db:
                (((keys,),),) = await db.together(due.still_ours(worker, claims))
            ours = set(keys)
