"""Reconcile claimed members: read what they hold within a time for each server, decide, and write the decisions."""

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
from models.db.session import AsyncSession, GuardFailed
from services.core import queue, request_ids
from services.core.queue import Claim
from services.engine import cases, ledger, read_and_confirm, snapshot
from services.engine.cases import Case
from services.engine.reconcile_outcome import BatchOutcome, CaseOutcome, ServerChain
from services.engine.snapshot import Stored
from services.holdings import delegations, fetch
from services.holdings.evaluate import Answers
from services.holdings.fetch import HoldingsQuestion
from services.holdings.shared_balances import MOST_WEIGHT, JointBalances
from services.runtime import time_budget
from services.runtime.task_cancellation import stop

log = logging.getLogger(f"holdfast.{__name__}")

PATIENCE = 0.25
"""Seconds for which a reconcile collects its first answers, so that a thousand servers are not written one by one."""
LOOK_SECONDS = 20.0
"""Time limit for reading one server token by token; what has not arrived by then is unknown."""


@dataclass(slots=True)
class BatchPart:
    """Claimed members who are reconciled and written together.

    They are either all members of servers whose rules need balances of the same chains; or the members of one server
    that needs very many balances; or the members of one server whose rules read tokens, traits, delegations or any
    collection one by one, or name a costly contract. A slow chain or server thus delays only its own members.
    """

    claims: Sequence[Claim]
    found: Stored
    joint: JointBalances
    """Parts with the same object share their balance requests."""
    server_id: int | None = None
    """The server that is read token by token or is costly; None for a part that ordinary balances answer."""
    chains: frozenset[str] = frozenset()
    """The chains whose balances answer this part."""
    cases: Sequence[Case] | None = None
    """None if delegations are read before the cases are made."""
    began: float = field(default_factory=time.monotonic)
    """When `found` was read, in monotonic seconds."""

    def __len__(self) -> int:
        """Return the number of its members."""
        return len(self.claims)

    def first(self, members: int) -> "BatchPart":
        """Return the part with only its first `members` members."""
        return self._piece(0, members)

    def divided(self, members: int) -> "list[BatchPart]":
        """Return parts with at most so many members each."""
        return [self._piece(start, start + members) for start in range(0, len(self), members)]

    def _piece(self, start: int, end: int) -> "BatchPart":
        some = None if self.cases is None else self.cases[start:end]
        return replace(self, claims=self.claims[start:end], cases=some)


async def parts(db: AsyncSession, outside: Gateways, claims: Sequence[Claim]) -> list[BatchPart]:
    """Read the snapshot of claimed members, and split them into parts that can be written separately.

    Parts that balances answer come first.
    """
    found = await snapshot.read(db, claims)
    joint = JointBalances(outside.chains)
    delegating = {server_id for server_id, terms in found.rules.items() if delegations.chains_of(terms)}
    others = [claim for claim in claims if claim.server_id not in delegating]
    known = found.only({claim.server_id for claim in others}) if delegating else found
    batch = await cases.build(db, others, known) if others else []
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
        # A costly contract delays only the members that need it.
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
    """Return the servers with so many balances that they get a request of their own."""
    weights = Counter[int]()
    for case in batch:
        contracts = sum(len(wants.balances) for wants in case.wants.values())
        weights[case.claim.server_id] += len(case.wallets) * contracts
    return {server_id for server_id, weight in weights.items() if weight > MOST_WEIGHT}


def _costly(batch: Sequence[Case], outside: Gateways) -> set[int]:
    """Return the servers whose rules name a contract that costs a node far more than others."""
    wanted = {case.claim.server_id: case.wants for case in batch}
    chains = {chain for of_server in wanted.values() for chain in of_server}
    costly = {chain: found for chain in sorted(chains) if (found := outside.chains.costly(chain))}
    return {
        server_id
        for server_id, of_server in wanted.items()
        for chain in of_server.keys() & costly.keys()
        if not costly[chain].isdisjoint((*of_server[chain].balances, *of_server[chain].beside))
    }


async def reconcile_part(outside: Gateways, worker: str, part: BatchPart) -> bool:
    """Reconcile one part; return whether everything was known. Doubtful members stay queued."""
    if part.server_id is None:
        return await _reconcile(outside, worker, part)
    urgent = max(claim.priority for claim in part.claims) >= queue.SEEN
    with on_behalf_of(f"server:{part.server_id}", urgent=urgent), time_budget.of(LOOK_SECONDS):
        return await _reconcile(outside, worker, part)


async def reconcile_claims(outside: Gateways, worker: str, claims: Sequence[Claim]) -> None:
    """Reconcile claimed members, one part after the other."""
    async with reading() as db:
        parted = await parts(db, outside, claims)
    for part in parted:
        await reconcile_part(outside, worker, part)


async def _reconcile(outside: Gateways, worker: str, part: BatchPart) -> bool:
    async with reading() as db:
        batch = part.cases if part.cases is not None else await _with_delegations(db, outside, part)
        wanted = await read_and_confirm.questions(db, batch)
    moves = doubtful = 0
    async with aclosing(_as_answered(outside, batch, wanted, part.joint)) as groups:
        async for some, asked, answered in groups:
            # A part may have waited for its turn, so it is decided by the present time.
            now = part.found.at + timedelta(seconds=time.monotonic() - part.began)
            done = await read_and_confirm.decide_cases(outside, some, asked, now, answered=answered)
            moves += await _settle(worker, done)
            doubtful += sum(item.doubtful for item in done.outcomes)
    for request, members in Counter(claim.request_id for claim in part.claims if claim.request_id).items():
        with request_ids.under(request):
            log.info("reconciled members=%s role_changes_of_batch=%s", members, moves)
    return not doubtful


_Answered = tuple[Sequence[Case], Mapping[ServerChain, HoldingsQuestion], tuple[Mapping[ServerChain, Answers], float]]
"""Cases, the questions about them, and the chains' first answers."""


async def _as_answered(
    outside: Gateways, batch: Sequence[Case], wanted: Mapping[ServerChain, HoldingsQuestion], joint: JointBalances
) -> AsyncGenerator[_Answered]:
    """Ask the chains about a batch, and yield the cases of each server once all answers for it have arrived.

    Servers whose answers arrive within a short interval are yielded together, and the intervals grow.
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
    """Return the cases of a part after reading the delegations to its members."""
    if stale := await cases.delegations_to_read(db, part.claims, part.found.rules):
        await release(db)
        fetched = await delegations.read(outside, stale)
        async with transaction() as writing:
            await delegations.remember(writing, fetched)
        part.found, part.began = await snapshot.read(db, part.claims), time.monotonic()
    return await cases.build(db, part.claims, part.found)


async def _settle(worker: str, done: BatchOutcome) -> int:
    """Write the decisions of a reconcile; return the number of queued role changes.

    The same transaction checks that the claims are still ours. On a conflict, lock the claims that are and retry with
    them: of thousands of members, some are marked again all the time.
    """
    if done.delegations:
        # Apart from the decisions, because it marks members of any server, whom another reconcile may have locked while
        # it waits for ours.
        async with transaction() as db:
            await delegations.remember(db, done.delegations)
    gone: dict[int, list[CaseOutcome]] = {}
    for item in done.outcomes:
        if item.gone:
            gone.setdefault(item.case.claim.server_id, []).append(item)
    for server_id, items in gone.items():
        # Apart for the same reason. What is written about those who left is committed with the marks of others, so no
        # crash comes between.
        async with transaction() as db:
            await ledger.write_departures(db, worker, server_id, items)
    claims = [item.case.claim for item in done.outcomes if not item.gone]
    with suppress(GuardFailed):
        async with transaction() as db:
            queue.check_unchanged(db, worker, claims)
            return await ledger.write_decisions(db, worker, done, {claim.key for claim in claims})
    async with transaction() as db:
        (((ours, merely_seen),),) = await db.together(queue.still_ours(worker, claims))
        return await ledger.write_decisions(db, worker, done, set(ours), set(merely_seen))
