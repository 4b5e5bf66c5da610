"""Contract accounts that prove themselves: a Safe and an ERC-4337 account, each only on the chain of its proof."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from eth_abi.abi import encode
from eth_utils.crypto import keccak
from sqlmodel import select

from models import Wallet, transaction
from sandbox.contracts import accounts
from tests.jobs.conftest import product as product
from tests.sandbox.control import SandboxControl
from tests.services.wallets.walker import Walker, clock_looks

STANDARDS = ("Safe", "Account4337")
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


async def deployed(walker: Walker, standard: str, chain: str = "base", owner: str = "") -> str:
    made = await walker.tell(f"chains/{chain}/deploy", standard=standard, owner=owner or walker.address)
    return made["contract"]


async def pays(walker: Walker, account: str, value: int, chain: str = "base", **more: str) -> str:
    told = await walker.tell(f"chains/{chain}/self-transaction", account=account, value_wei=str(value), **more)
    return told["hash"]


async def amount(walker: Walker, account: str) -> int:
    return int((await walker.challenge(account)).chains[0].value_wei)


async def kept() -> list[tuple[str, str]]:
    """Return the address and chain of every wallet."""
    async with transaction() as db:
        return [(one.address, one.chain) for one in (await db.exec(select(Wallet).order_by("id"))).all()]


def calldata(form: str, types: list[str], *values: Any) -> str:
    return "0x" + (keccak(text=form)[:4] + encode(types, values)).hex()


@pytest.mark.parametrize("standard", STANDARDS)
@pytest.mark.parametrize("way", ["found", "by the clock", "pasted"])
async def test_an_account_that_pays_itself_is_proved_on_that_chain(walker: Walker, standard: str, way: str) -> None:
    account = await deployed(walker, standard)
    sent = await pays(walker, account, await amount(walker, account))
    if way == "by the clock":
        assert await clock_looks() == 1
    else:
        verdict = await walker.verify(sent if way == "pasted" else "", address=account)
        assert verdict.success, verdict.message
    assert await kept() == [(account, "base")]


@pytest.mark.parametrize("standard", STANDARDS)
async def test_the_code_as_data_proves_it_too(walker: Walker, standard: str) -> None:
    account = await deployed(walker, standard)
    asked = (await walker.challenge(account)).chains[0]
    await pays(walker, account, 0, data=asked.data)
    assert (await walker.verify(address=account)).success


async def test_the_same_address_is_another_account_elsewhere(walker: Walker, new_walker: NewWalker) -> None:
    """The accounts deployed with the same number on two chains share an address, and may have different owners."""
    other = await new_walker()
    world = (await walker.control.get("/control/world")).json()["chains"]
    count = {chain: len(world[chain]["accounts"]) for chain in ("polygon", "optimism")}
    for chain, there in count.items():
        for _ in range(max(count.values()) - there):
            await deployed(walker, "Safe", chain)
    account = await deployed(walker, "Safe", "polygon")
    assert await deployed(other, "Safe", "optimism") == account
    await pays(walker, account, await amount(walker, account), "polygon")
    assert (await walker.verify(address=account)).success
    await pays(other, account, await amount(other, account), "optimism")
    assert (await other.verify(address=account)).success
    assert await kept() == [(account, "polygon"), (account, "optimism")]
    assert (await walker.holds(), await other.holds()) == ([account], [account])


async def test_an_account_moves_to_who_proves_it_last(walker: Walker, new_walker: NewWalker) -> None:
    thief = await new_walker()
    account = await deployed(walker, "Safe")
    for one in (walker, thief):
        await pays(walker, account, await amount(one, account))
        assert (await one.verify(address=account)).success
    assert (await walker.holds(), await thief.holds()) == ([], [account])


@pytest.mark.parametrize("standard", STANDARDS)
async def test_a_wrong_amount_is_told_and_proves_nothing(walker: Walker, standard: str) -> None:
    account = await deployed(walker, standard)
    sent = await pays(walker, account, await amount(walker, account) + 1)
    for pasted in ("", sent):
        verdict = await walker.verify(pasted, address=account)
        assert not verdict.success
        assert "It has to carry exactly" in verdict.message
    assert await kept() == []


async def test_somebody_elses_account_proves_nothing_of_mine(walker: Walker) -> None:
    mine, other = await deployed(walker, "Safe"), await deployed(walker, "Safe")
    sent = await pays(walker, other, await amount(walker, mine))
    assert "not from" in (await walker.verify(sent, address=mine)).message
    assert await kept() == []


async def test_what_an_account_pays_to_another_proves_nothing(walker: Walker) -> None:
    account = await deployed(walker, "Safe")
    value = await amount(walker, account)
    await walker.tell("chains/base/send", **{"from": walker.address, "to": account, "value_wei": str(value * 2)})
    types = ["address", "uint256", "bytes", "uint8", *["uint256"] * 3, "address", "address", "bytes"]
    signature = bytes.fromhex(accounts.of_owner(walker.address))
    data = calldata(
        f"execTransaction({','.join(types)})", types, walker.address, value, b"", 0, 0, 0, 0, accounts.NOBODY,
        accounts.NOBODY, signature,
    )  # fmt: skip
    sent = await walker.sends("base", 0, data=data, to=account)
    assert "goes to somebody else" in (await walker.verify(sent, address=account)).message


async def test_a_failing_call_and_a_delegatecall_prove_nothing(walker: Walker) -> None:
    account = await deployed(walker, "Safe")
    value = await amount(walker, account)
    types = ["address", "uint256", "bytes", "uint8", *["uint256"] * 3, "address", "address", "bytes"]
    signature = bytes.fromhex(accounts.of_owner(walker.address))
    # The call fails since the Safe has no coins; because of the gas price, the Safe's transaction still succeeds.
    for operation, price, said in ((0, 1, "failed on Base"), (1, 0, "ran another contract's code")):
        data = calldata(
            f"execTransaction({','.join(types)})", types, account, value, b"", operation, 0, 0, price, accounts.NOBODY,
            accounts.NOBODY, signature,
        )  # fmt: skip
        sent = await walker.sends("base", 0, data=data, to=account)
        assert said in (await walker.verify(sent, address=account)).message
    assert await kept() == []


async def test_a_bundle_proves_each_member_their_own_account(walker: Walker, new_walker: NewWalker) -> None:
    people = [walker, await new_walker()]
    mine = [await deployed(one, "Account4337", owner=one.address) for one in people]
    operations = []
    for one, account in zip(people, mine, strict=True):
        value = await amount(one, account)
        await one.tell("chains/base/send", **{"from": one.address, "to": account, "value_wei": str(value)})
        wanted = accounts.operation(account, 0, value, "0x")
        hash = await one.asks(
            "base", "eth_call", {"to": accounts.ENTRY_POINT, "data": accounts.hash_of(wanted)}, "latest"
        )
        await one.sends("base", 0, data=calldata("approve(bytes32)", ["bytes32"], bytes.fromhex(hash[2:])), to=account)
        operations.append(wanted)
    sent = await walker.tell(
        "chains/base/send",
        **{"from": accounts.BUNDLER, "to": accounts.ENTRY_POINT, "value_wei": "0", "data": accounts.bundle(operations)},
    )
    for one, account in zip(people, mine, strict=True):
        verdict = await one.verify(sent["hash"], address=account)
        assert verdict.success, verdict.message
    assert await kept() == [(account, "base") for account in mine]
    again = await walker.verify(sent["hash"], address=mine[0])
    assert "each one counts once" in again.message


async def test_what_a_contract_can_and_cannot_do_is_said_before_it_tries(walker: Walker) -> None:
    account = await deployed(walker, "Safe")
    await walker.challenge(account)
    verdict = await walker.verify(address=account)
    assert (verdict.success, verdict.again) == (False, True)
    for said in ("smart-contract wallet at this address on Base", "Safe", "ERC-4337", "delegate.xyz", "chain only"):
        assert said in verdict.remark


async def test_a_bio_proves_no_contract(walker: Walker) -> None:
    account = await deployed(walker, "Safe")
    code = (await walker.challenge(account)).code
    await walker.control.put(f"/control/opensea/accounts/{account}", json={"bio": code})
    verdict = await walker.verify(address=account, method="opensea_bio")
    assert (verdict.success, verdict.again) == (False, False)
    assert "is a smart contract on Base" in verdict.message
    assert verdict.by_transaction
    assert await kept() == []


async def test_logs_that_cannot_be_read_delay_the_contract_and_nobody_else(
    walker: Walker, new_walker: NewWalker
) -> None:
    other, account = await new_walker(), await deployed(walker, "Safe")
    value, theirs = await amount(walker, account), await other.amount()
    await pays(walker, account, value)
    await other.sends("base", theirs)
    fault = {"target": "rpc:base", "kind": "empty", "seconds": 60}
    await walker.tell("faults", **fault)
    await walker.tell("faults", **(fault | {"target": "rpc2:base"}))
    await clock_looks()
    assert await kept() == []
    await walker.control.delete("/control/faults")
    assert await clock_looks() == 2
    assert sorted(await kept()) == sorted([(account, "base"), (other.address, "")])
