"""Each process starts with what others learned about a node's limits, even after all processes have ended."""

import pytest

from gateways.evm.rpc import node_limits as noted
from gateways.evm.rpc.node_limits import NodeLimits, digest, known, note
from models import transaction
from services.runtime import node_limit_sharing

pytestmark = pytest.mark.usefixtures("database")
URL, OTHER = "https://node.example/one", "https://node.example/two"


async def test_what_is_noted_is_there_after_a_restart() -> None:
    note(URL, log_blocks=10, batch=3, state_override=False)
    await node_limit_sharing.exchange()
    noted.forget()
    assert known(URL) == NodeLimits()
    await node_limit_sharing.exchange()
    assert known(URL) == NodeLimits(log_blocks=10, batch=3, state_override=False)
    assert known(OTHER) == NodeLimits()


async def test_who_found_one_thing_leaves_what_others_found_beside_it() -> None:
    note(URL, log_blocks=10, states=127)
    note(OTHER, finalized=False)
    await node_limit_sharing.exchange()
    noted.forget()
    note(URL, batch=3, log_blocks=None)
    await node_limit_sharing.exchange()
    assert known(URL) == NodeLimits(batch=3, states=127)
    async with transaction() as db:
        assert await node_limit_sharing.read(db) == {
            digest(URL): NodeLimits(batch=3, states=127), digest(OTHER): NodeLimits(finalized=False),
        }  # fmt: skip
    assert noted.news() == {}
