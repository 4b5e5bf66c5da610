"""A batch that fails by an error of our own is split so that few of the other servers are reconciled again."""

import asyncio
from collections.abc import Sequence

import pytest

from jobs import reconciler
from jobs.reconciler import Reconciler
from services.core.queue import Claim
from services.engine import reconcile

pytestmark = pytest.mark.usefixtures("product")
SERVERS, MEMBERS, POISONED = 32, 8, 13


async def test_the_members_of_the_server_at_fault_are_found_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rule is at fault, so all of its members fail, and the claims go round the servers."""
    claims = [Claim(server, f"{server}-{turn}", 1, 0, 0) for turn in range(MEMBERS) for server in range(SERVERS)]
    done, tries = list[Claim](), list[int]()

    async def work(_outside: object, _worker: str, some: Sequence[Claim]) -> None:
        tries.append(len(some))
        if any(claim.server_id == POISONED for claim in some):
            raise ValueError("nobody foresaw this")
        done.extend(some)

    monkeypatch.setattr(reconciler, "gateways", lambda: None)
    monkeypatch.setattr(reconcile, "reconcile_claims", work)
    await Reconciler(asyncio.Event())._careful(claims, lambda: work(None, "", claims))
    assert set(done) == {claim for claim in claims if claim.server_id != POISONED}
    assert len(done) == len(set(done))
    assert tries.count(1) == MEMBERS
    assert len(tries) < 4 * MEMBERS
