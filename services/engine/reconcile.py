"""A look at due members who were claimed: read what they hold, decide, and write the decisions down."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta

from gateways import Gateways
from gateways.transport.fair_turns import on_behalf_of
from models import reading, release, transaction
from models.db.session import AsyncSession, NotSo
from services.core import queue, request_ids
from services.core.queue import Claim
from services.engine import cases, decisions, ledger, snapshot
from services.engine.cases import Case
from services.engine.outcome import Place, Round
from services.engine.snapshot import Stored
from services.holdings import delegations, fetch
from services.holdings.evaluate import Answers
from services.holdings.fetch import HoldingsQuestion
from services.holdings.shared_balances import MOST_WEIGHT, JointBalances
from services.runtime import time_budget
from services.runtime.tasks import stop

log = logging.getLogger("holdfast.services.engine.reconcile")

PATIENCE = 0.25
"""Seconds in which the first answers of a look are collected, so that a thousand servers are not settled one by one."""
LOOK_SECONDS = 20.0
"""How long reading token by token may take for one server's look; what has not come by then is unknown."""


@dataclass(slots=True)
class BatchPart:
    """Claimed members who are looked at and settled together.

    Either all members of servers whose rules ask balances of the same chains, or those of one server that asks for very
    many, or the members of one server whose rules have tokens, traits, delegations or anything at all read one by one,
    or name a contract that is costly to ask. A slow chain or server then keeps only its own members waiting.
    """

    claims: Sequence[Claim]
    found: Stored
    joint: JointBalances
    """Parts with the same one ask each chain for balances together."""
    server_id: int | None = None
    """The server that is read token by token or is costly; None for a part that ordinary balances answer."""
    chains: frozenset[str] = frozenset()
    """The chains that are asked for the balances that answer it."""
    cases: Sequence[Case] | None = None
    """None where delegations are read before the cases are made."""
    began: float = field(default_factory=time.monotonic)
    """When `found` was read, in monotonic seconds."""

    def __len__(self) -> int:
        """How many members it has."""
        return len(self.claims)

    def first(self, members: int) -> "BatchPart":
        """Return the part with its first so many members alone."""
        some = None if self.cases is None else self.cases[:members]
        return replace(self, claims=self.claims[:members], cases=some)


async def parts(db: AsyncSession, outside: Gateways, claims: Sequence[Claim]) -> list[BatchPart]:
    """Read what is stored of claimed members, and part those who can be settled apart from each other.

    Those whom balances answer come first.
    """
    found = await snapshot.read(db, claims)
    joint = JointBalances(outside.chains)
    delegating = {server_id for server_id, terms in found.rules.items() if delegations.chains_of(terms)}
    others = [claim for claim in claims if claim.server_id not in delegating]
    known = found.only({claim.server_id for claim in others}) if delegating else found
    batch = await cases.made(db, others, known) if others else []
    large, costly = _large(batch), _costly(batch, outside)
    alike: dict[tuple[int | None, int | None, frozenset[str]], list[Case]] = {}
    for case in batch:
        server_id = case.claim.server_id
        if server_id in costly or any(wants.tokens or wants.anything for wants in case.wants.values()):
            key = server_id, None, frozenset[str]()
        else:
            key = None, server_id if server_id in large else None, frozenset(case.wants)
        alike.setdefault(key, []).append(case)
    made = [
        # Whom a costly contract is asked about waits for nobody else's answer, and nobody for theirs.
        BatchPart(
            [case.claim for case in some],
            known,
            JointBalances(outside.chains) if server_id in costly else joint,
            server_id,
            chains,
            some,
        )
        for (server_id, _, chains), some in alike.items()
    ]
    for server_id in sorted(delegating):
        of_server = [claim for claim in claims if claim.server_id == server_id]
        made.append(BatchPart(of_server, found.only({server_id}), joint, server_id))
    return sorted(made, key=lambda part: part.server_id is not None)


def _large(batch: Sequence[Case]) -> set[int]:
    """Return the servers whose balances make a question of their own, which takes longer than the others'."""
    weights = Counter[int]()
    for case in batch:
        contracts = sum(len(wants.balances) for wants in case.wants.values())
        weights[case.claim.server_id] += len(case.wallets) * contracts
    return {server_id for server_id, weight in weights.items() if weight > MOST_WEIGHT}


def _costly(batch: Sequence[Case], outside: Gateways) -> set[int]:
    """Return the servers whose rules name a contract that takes far more of a node than others do."""
    wanted = {case.claim.server_id: case.wants for case in batch}
    chains = {chain for of_server in wanted.values() for chain in of_server}
    costly = {chain: found for chain in sorted(chains) if (found := outside.chains.costly(chain))}
    return {
        server_id
        for server_id, of_server in wanted.items()
        for chain in of_server.keys() & costly.keys()
        if not costly[chain].isdisjoint((*of_server[chain].balances, *of_server[chain].beside))
    }


async def look(outside: Gateways, worker: str, part: BatchPart) -> None:
    """Look at one part and settle it; what could not be read leaves its members due."""
    if part.server_id is None:
        await _look(outside, worker, part)
        return
    urgent = max(claim.priority for claim in part.claims) >= queue.SEEN
    with on_behalf_of(f"server:{part.server_id}", urgent=urgent), time_budget.of(LOOK_SECONDS):
        await _look(outside, worker, part)


async def look_at(outside: Gateways, worker: str, claims: Sequence[Claim]) -> None:
    """Look at claimed members, one part after the other."""
    async with reading() as db:
        parted = await parts(db, outside, claims)
    for part in parted:
        await look(outside, worker, part)


async def _look(outside: Gateways, worker: str, part: BatchPart) -> None:
    async with reading() as db:
        batch = part.cases if part.cases is not None else await _with_delegations(db, outside, part)
        wanted = await decisions.questions(db, batch)
    moves = 0
    async with aclosing(_as_answered(outside, batch, wanted, part.joint)) as groups:
        async for some, asked, answered in groups:
            # What waited for its turn is decided by the time that it is now.
            now = part.found.at + timedelta(seconds=time.monotonic() - part.began)
            done = await decisions.look(outside, some, asked, now, answered=answered)
            moves += await _settle(worker, done)
    for request, members in Counter(claim.request_id for claim in part.claims if claim.request_id).items():
        with request_ids.under(request):
            log.info("looked at %s of the members whom it made due; %s roles of the batch move", members, moves)


_Answered = tuple[Sequence[Case], Mapping[Place, HoldingsQuestion], tuple[Mapping[Place, Answers], float]]
"""Cases, what was asked for them, and what the chains answered with when they were first asked."""


async def _as_answered(
    outside: Gateways, batch: Sequence[Case], wanted: Mapping[Place, HoldingsQuestion], joint: JointBalances
) -> AsyncGenerator[_Answered]:
    """Ask for a batch, and yield its cases as soon as everything that concerns their servers is answered.

    Answers that come within a moment of each other are yielded together, and the moments grow.
    """
    began, patience = time.monotonic(), PATIENCE
    asking = {place: asyncio.create_task(fetch.ask(outside, one, joint)) for place, one in wanted.items()}
    left: Sequence[Case] = batch
    try:
        while left:
            open_ = [task for task in asking.values() if not task.done()]
            if open_:
                _, late = await asyncio.wait(open_, return_when=asyncio.FIRST_COMPLETED)
                if late:
                    await asyncio.wait(late, timeout=patience)
                    patience *= 2
            waiting = {place[0] for place, task in asking.items() if not task.done()}
            ready = [case for case in left if case.claim.server_id not in waiting]
            if not ready:
                continue
            left = [case for case in left if case.claim.server_id in waiting]
            servers = {case.claim.server_id for case in ready}
            asked = {place: one for place, one in wanted.items() if place[0] in servers}
            yield ready, asked, ({place: asking[place].result() for place in asked}, began)
    finally:
        await stop(*asking.values())


async def _with_delegations(db: AsyncSession, outside: Gateways, part: BatchPart) -> list[Case]:
    """Make the cases of a part once what vaults delegated to its members is known."""
    if stale := await cases.delegations_to_read(db, part.claims, part.found.rules):
        await release(db)
        fetched = await delegations.read(outside, stale)
        async with transaction() as writing:
            await delegations.remember(writing, fetched)
        part.found, part.began = await snapshot.read(db, part.claims), time.monotonic()
    return await cases.made(db, part.claims, part.found)


async def _settle(worker: str, done: Round) -> int:
    """Write down the decisions of a look; return how many roles are to be given or taken.

    That all claims are still ours is made sure of along with the writing. Only where it is not so is asked which are,
    and they are locked until it is written: among thousands of members somebody else is marked all the time.
    """
    claims = [item.case.claim for item in done.looked]
    with suppress(NotSo):
        async with transaction() as db:
            queue.hold(db, worker, claims)
            return await ledger.settle(db, worker, done, {claim.key for claim in claims})
    async with transaction() as db:
        (((ours, merely_seen),),) = await db.together(queue.still_ours(worker, claims))
        return await ledger.settle(db, worker, done, set(ours), set(merely_seen))
