"""A look at due members who were claimed: read what they hold, decide, and write the decisions down."""

import logging
from collections import Counter
from collections.abc import Sequence

from gateways import Gateways
from models import now, release, transaction
from models.database import AsyncSession
from services import cases, decisions, delegations, ledger, request_ids, stored
from services.due import Claim

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
    done = await decisions.look(outside, batch, wanted, now())
    async with transaction() as writing:
        moves = await ledger.settle(writing, worker, done)
    for request, members in Counter(claim.request_id for claim in claims if claim.request_id).items():
        with request_ids.under(request):
            log.info("looked at %s of the members whom it made due; %s roles of the batch move", members, moves)
