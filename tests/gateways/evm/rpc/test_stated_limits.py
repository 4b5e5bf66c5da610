"""The limits that nodes state in their refusals, in the wording of real nodes."""

import pytest

from gateways.evm.rpc.stated_limits import stated_blocks, stated_calls
from sandbox.chains.plans import PLANS


@pytest.mark.parametrize(
    ("said", "blocks"),
    [
        ("You can make eth_getLogs requests with up to a 10 block range", 10),
        ("this block range should work: [0x1180fca, 0x1180fd3]. Upgrade", 10),
        ("query returned more than 10000 results. Try with this block range [0x64, 0xc7].", 100),
        ("eth_getLogs is limited to a 10,000 range", 10_000),
        ("query exceeds max block range 500", 500),
        ("exceed maximum block range: 50000", 50_000),
        ("ranges over 10000 blocks are not supported on freetier", 10_000),
        ("eth_getLogs is limited to a 40 block range", 40),
        ("maximum allowed is 25 blocks", 25),
        ("range 1000000 exceeds limit of 10000", 10_000),
        ("query returned more than 10000 results", None),
        ("Log response size exceeded.", None),
        ("block range [0xc7, 0x64]", None),
        ("exceed maximum block range: 0", None),
        ("", None),
    ],
)
def test_blocks_that_a_node_says_it_gives(said: str, blocks: int | None) -> None:
    assert stated_blocks(said) == blocks


@pytest.mark.parametrize(
    ("said", "calls"),
    [
        ("Batch of more than 3 requests are not allowed on free tier", 3),
        ("maximum 10 calls in 1 batch", 10),
        ("batch limit: 100", 100),
        ("batch too large", None),
        ("batch requests are not supported", None),
    ],
)
def test_calls_that_a_node_says_it_takes(said: str, calls: int | None) -> None:
    assert stated_calls(said) == calls


@pytest.mark.parametrize("chain", PLANS)
def test_what_each_kind_of_node_says_is_its_limit(chain: str) -> None:
    plan = PLANS[chain]
    if plan.blocks is not None and plan.too_wide is not None:
        assert stated_blocks(plan.too_wide(7, 10**6, plan.blocks).error["message"]) == plan.blocks
    if plan.batch is not None and plan.batch_denied is not None:
        assert stated_calls(plan.batch_denied(plan.batch).error["message"]) in {plan.batch, None}
