"""Wallets proved by a transaction: what is found without help, what a pasted hash does, and what proves nothing."""
# The items of one request are recorded one by one, and only the first carries the bytes of all.

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from gateways import close_gateways
from models import transaction
from services.wallets import open_challenges, proof_watch, wallets
from tests.jobs.conftest import product as product
from tests.sandbox.control import SandboxControl
from tests.services.wallets.walker import Walker, clock_looks

EVM = ["ethereum", "polygon", "arbitrum", "optimism", "base", "apechain", "abstract"]
NewWalker = Callable[[], Awaitable[Walker]]


@pytest.fixture
async def new_walker(product: None, sandbox_url: str) -> AsyncIterator[NewWalker]:
    async with SandboxControl(sandbox_url) as control:
        await control.delete("/control/faults")
        yield lambda: Walker.new(control)
        await control.delete("/control/faults")


@pytest.fixture
async def walker(new_walker: NewWalker) -> Walker:
    return await new_walker()


async def test_the_exact_amount_from_the_wallet_to_itself_proves_it_on_every_chain(new_walker: NewWalker) -> None:
    for chain in EVM:
        walker = await new_walker()
        await walker.sends(chain, await walker.amount())
        verdict = await walker.verify()
        assert verdict.success, (chain, verdict.message)
        assert await walker.holds() == [walker.address]


async def test_the_code_as_data_proves_it_whatever_the_amount(walker: Walker) -> None:
    asked = (await walker.challenge()).chains[0]
    await walker.sends("optimism", 5, data=asked.data)
    assert (await walker.verify()).success


async def test_the_clock_finds_it_while_nobody_asks(walker: Walker) -> None:
    await walker.sends("arbitrum", await walker.amount())
    assert await clock_looks() == 1
    assert await walker.holds() == [walker.address]
    assert (await walker.check()).success
    assert await clock_looks() == 0


async def test_a_pasted_hash_or_link_proves_it(new_walker: NewWalker) -> None:
    for form in ("{}", "https://basescan.org/tx/{}"):
        walker = await new_walker()
        sent = await walker.sends("base", await walker.amount())
        verdict = await walker.verify(form.format(sent))
        assert verdict.success, (form, verdict.message)


async def test_a_wallet_is_proved_long_after_by_nodes_that_keep_little_of_the_past(walker: Walker) -> None:
    await walker.tell("chains/base/send", **{"from": walker.address, "to": walker.address, "value_wei": "1"})
    amount = await walker.amount()
    await walker.mines("base", 140)
    await walker.sends("base", 3, to="0x" + "5e" * 20)
    await walker.sends("base", amount)
    await walker.mines("base", 140)
    verdict = await walker.verify()
    assert verdict.success, verdict.message


async def test_a_found_proof_costs_a_handful_of_requests(walker: Walker) -> None:
    await walker.sends("base", 1)
    amount = await walker.amount()
    await clock_looks()
    mark = (await walker.control.get("/control/requests", params={"since": 2**31})).json()["next"]
    await walker.sends("base", 3, to="0x" + "5e" * 20)
    await walker.sends("base", amount)
    assert await clock_looks() == 1
    assert await walker.holds() == [walker.address]
    answer = (await walker.control.get("/control/requests", params={"since": mark})).json()["requests"]
    # The items of one request are recorded one by one, and only the first carries the bytes of all.
    asked = [one for one in answer if one["target"] in {"rpc:base", "rpc2:base"}]
    assert len([one for one in asked if one["bytes"]]) <= 8, asked  # two of them go to the second node
    methods = [one["rpc_method"] for one in asked]
    assert methods.count("eth_getTransactionCount") <= 2
    assert methods.count("eth_getBlockByNumber") <= 20, "only the blocks since the last look are read"


@pytest.fixture
def little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A product for which an absence of few blocks is already long."""
    monkeypatch.setattr(proof_watch, "SCANNED_AT_ONCE", 20)
    monkeypatch.setattr(proof_watch, "SCANNED_AT_MOST", 200)


async def test_after_our_own_absence_it_is_found_in_the_blocks(little_patience: None, walker: Walker) -> None:
    await walker.sends("base", await walker.amount())
    await walker.mines("base", 150)
    assert (await walker.verify()).success


async def test_what_nobody_can_find_any_more_is_asked_for_by_its_hash(little_patience: None, walker: Walker) -> None:
    sent = await walker.sends("apechain", await walker.amount())
    await walker.mines("apechain", 250)
    verdict = await walker.verify()
    assert (verdict.success, verdict.again) == (False, True)
    assert "ApeChain" in verdict.message
    assert "paste its hash" in verdict.message
    assert (await walker.verify(sent)).success


async def test_an_old_transaction_proves_nothing(walker: Walker) -> None:
    old = await walker.sends("base", 7)
    await walker.challenge()
    assert "older than your challenge" in (await walker.verify(old)).message
    assert "older" not in (await walker.verify()).message
    assert await walker.holds() == []


async def test_a_foreign_transaction_proves_nothing(walker: Walker, new_walker: NewWalker) -> None:
    other, amount = await new_walker(), await walker.amount()
    foreign = await other.sends("base", amount)
    aside = await other.sends("base", amount, to=walker.address)
    for sent in (foreign, aside):
        assert "not from" in (await walker.verify(sent)).message
    elsewhere = await walker.sends("base", amount, to=other.address)
    assert "goes to somebody else" in (await walker.verify(elsewhere)).message
    assert not (await walker.verify()).success
    assert await walker.holds() == []


async def test_a_transaction_counts_once(walker: Walker, new_walker: NewWalker) -> None:
    sent = await walker.sends("base", await walker.amount())
    assert (await walker.verify(sent)).success
    assert "each one counts once" in (await (await new_walker()).verify(sent)).message
    # Their checks may have found it before they could paste it: nothing is left to verify.
    assert (await walker.verify(sent)).success
    async with transaction() as db:
        (wallet,) = await wallets.list_wallets(db, walker.actor)
        await wallets.remove(db, walker.actor, wallet.id)
    again = await walker.verify(sent)
    assert not again.success
    assert "each one counts once" in again.message


async def test_a_wrong_amount_is_told_and_proves_nothing(walker: Walker) -> None:
    amount = await walker.amount()
    sent = await walker.sends("base", amount + 1)
    for verdict in (await walker.verify(sent), await walker.verify(), await walker.check()):
        assert not verdict.success
        assert "has to carry exactly" in verdict.message
    await walker.sends("base", amount)
    assert (await walker.verify()).success


async def test_somebody_elses_amount_and_code_prove_nothing(walker: Walker, new_walker: NewWalker) -> None:
    other = await new_walker()
    theirs = (await other.challenge(walker.address)).chains[0]
    await walker.challenge()
    await walker.sends("base", theirs.value_wei)
    await walker.sends("base", 0, data=theirs.data)
    assert not (await walker.verify()).success
    # The other person was shown this amount, and the wallet's owner has sent it.
    assert (await other.verify(address=walker.address)).success


async def test_a_failed_transaction_proves_nothing(walker: Walker) -> None:
    world = (await walker.control.get("/control/world")).json()
    amount = await walker.amount()
    await walker.sends("base", 1)
    # Only an account with delegated contract code (EIP-7702) can fail to send to itself.
    await walker.lets_act("base", world["chains"]["base"]["collections"][0]["contract"])
    sent = await walker.signs("base", amount, data="0xffffffff")
    receipt = await walker.asks("base", "eth_getTransactionReceipt", sent)
    assert receipt["status"] == "0x0"
    for verdict in (await walker.verify(sent), await walker.verify()):
        assert not verdict.success
        assert "failed on Base" in verdict.message
    assert await walker.holds() == []


async def test_an_unconfirmed_transaction_waits_and_says_how_many_are_missing(walker: Walker) -> None:
    amount = await walker.amount()
    await walker.sends("polygon", 1)
    sent = await walker.signs("polygon", amount)
    for verdict in (await walker.verify(), await walker.verify(sent), await walker.check()):
        assert (verdict.success, verdict.again) == (False, True)
        assert (verdict.chain, verdict.needed) == ("Polygon", 12)
        assert 1 <= verdict.confirmations < 12
        assert f"{12 - verdict.confirmations} are missing" in verdict.message
    await walker.mines("polygon", 12)
    assert await clock_looks() == 1
    assert (await walker.check()).success


async def test_a_transaction_that_a_reorganisation_drops_is_looked_for_again(walker: Walker) -> None:
    amount = await walker.amount()
    await walker.sends("polygon", 1)
    sent = await walker.signs("polygon", amount)
    assert (await walker.verify()).needed == 12
    mined = int((await walker.asks("polygon", "eth_getTransactionReceipt", sent))["blockNumber"], 16)
    head = int(await walker.asks("polygon", "eth_blockNumber"), 16)
    await walker.tell("chains/polygon/reorg", depth=str(head - mined + 3))
    gone = await walker.verify()
    assert (gone.success, gone.confirmations) == (False, 0)
    assert await walker.holds() == []
    await walker.sends("polygon", amount)
    assert (await walker.verify()).success


async def test_a_link_to_another_chain_is_told_and_its_hash_alone_is_found(walker: Walker) -> None:
    sent = await walker.sends("base", await walker.amount())
    verdict = await walker.verify(f"https://etherscan.io/tx/{sent}")
    assert not verdict.success
    assert "No transaction with this hash is known on Ethereum yet." in verdict.message
    assert "paste only its hash" in verdict.message
    assert (await walker.verify(sent)).success


async def test_nonsense_is_told_apart_from_an_unknown_transaction(walker: Walker) -> None:
    assert "not a transaction hash" in (await walker.verify("my transaction")).message
    unknown = await walker.verify("0x" + "12" * 32)
    assert unknown.again
    assert unknown.message.startswith("No transaction with this hash is known on Ethereum, ")
    assert unknown.message.endswith(" or Abstract yet. Check that the hash is complete.")


async def test_a_node_in_trouble_is_passed_by_and_a_chain_in_trouble_is_never_a_verdict(new_walker: NewWalker) -> None:
    for kind in ("down", "429", "malformed", "empty"):
        walker = await new_walker()
        amount = await walker.amount()
        await walker.tell("faults", target="rpc:optimism", kind=kind, seconds=60)
        sent = await walker.sends("optimism", amount)
        await walker.tell("faults", target="rpc2:optimism", kind="500", seconds=60)
        for verdict in (await walker.verify(), await walker.verify(sent)):
            assert (verdict.success, verdict.again) == (False, True), kind
            assert "Optimism" in verdict.message
            assert "cannot be asked right now" in verdict.message
        await walker.tell("faults", target="rpc2:optimism", kind="500", seconds=0.000_001)
        assert (await walker.verify()).success, kind
        await walker.control.delete("/control/faults")
        await close_gateways()  # nodes that rest after one fault would not meet the next


async def test_a_proof_by_transaction_moves_a_wallet_and_tells_its_former_holder(
    walker: Walker, new_walker: NewWalker
) -> None:
    thief = await new_walker()
    asked = (await thief.challenge(walker.address)).chains[0]
    await walker.sends("base", asked.value_wei)
    assert (await thief.verify(address=walker.address)).success
    await walker.sends("base", await walker.amount())
    assert (await walker.verify()).success
    assert (await walker.holds(), await thief.holds()) == ([walker.address], [])


async def test_a_smart_contract_wallet_is_told_what_it_can_do(walker: Walker) -> None:
    world = (await walker.control.get("/control/world")).json()
    contract = world["chains"]["base"]["collections"][0]["contract"]
    await walker.challenge(contract)
    verdict = await walker.verify(address=contract)
    assert (verdict.success, verdict.again) == (False, True)
    assert "smart-contract wallet at this address on Base" in verdict.message
    assert "delegate.xyz" in verdict.message


async def test_without_a_challenge_the_first_press_begins_one(walker: Walker) -> None:
    verdict = await walker.verify()
    assert (verdict.success, verdict.again) == (False, True)
    await walker.sends("base", await walker.amount())
    assert (await walker.verify()).success


async def test_an_idle_look_at_many_challenges_is_one_request_to_each_chain(
    walker: Walker, new_walker: NewWalker
) -> None:
    people = [walker, *[await new_walker() for _ in range(4)]]
    for one in people:
        await one.challenge()
    await clock_looks()
    mark = (await walker.control.get("/control/requests", params={"since": 2**31})).json()["next"]
    assert await clock_looks() == len(people)
    answer = (await walker.control.get("/control/requests", params={"since": mark})).json()["requests"]
    asked = [one for one in answer if one["target"].startswith("rpc")]
    # The items of one request are recorded one by one, and only the first carries the bytes of all.
    assert sorted(one["target"] for one in asked if one["bytes"]) == sorted(f"rpc:{chain}" for chain in EVM)
    methods = [one["rpc_method"] for one in asked if one["target"] == "rpc:base"]
    assert methods == ["eth_chainId", "eth_getBlockByNumber", *["eth_getTransactionCount"] * len(people)]


async def test_of_one_person_only_the_newest_challenges_are_followed_and_all_are_proved_by_a_hash(
    walker: Walker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_challenges, "MOST_OF_ONE", 2)
    amount = await walker.amount()
    for number in range(3):
        await walker.challenge(f"0x{number + 0xACE0000:040x}")
    assert await clock_looks() == 2
    sent = await walker.sends("base", amount)
    assert await clock_looks() == 2
    assert await walker.holds() == []
    assert (await walker.verify(sent)).success


async def test_an_account_that_is_too_busy_is_followed_no_longer_and_told_so(
    walker: Walker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proof_watch, "SCANNED_IN_ALL", 10)
    await walker.challenge()
    await walker.sends("optimism", 1)
    for _ in range(3):
        await walker.sends("optimism", 1)
        await clock_looks()
    said = (await walker.check()).message
    assert "On Optimism this wallet can no longer be followed" in said
