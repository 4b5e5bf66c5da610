"""A contract account counts on the chain where it was proved, although the same address holds tokens elsewhere."""

import secrets
import uuid
from typing import Any

import pytest

from models import Wallet, transaction
from services.accounts.users import ensure
from services.core import queue
from services.core.actors import Actor
from services.holdings.fetch_plan import addresses_on
from services.servers import explain
from tests.jobs.conftest import Engine
from tests.jobs.town import Town
from tests.jobs.watching import given

CHAINS = ("base", "optimism")


async def proves_contract(town: Town, who: str, address: str, chain: str) -> None:
    """Prove a contract account of the person on one chain."""
    person = town.people[who]
    async with transaction() as db:
        user_id = await ensure(db, person["id"], person["username"])
        db.add(Wallet(user_id=user_id, family="evm", address=address, chain=chain, method="transaction"))
        await db.flush()
        await queue.mark_people(db, [person["id"]])


async def collections(town: Town, holder: str) -> dict[str, str]:
    """The contract of a collection on each chain, in which the address has one token."""
    made: dict[str, str] = {}
    for chain in CHAINS:
        body: dict[str, Any] = {"standard": "ERC721", "name": "Both", "slug": uuid.uuid4().hex}
        made[chain] = (await town.call(f"chains/{chain}/deploy", **body))["contract"]
        await town.call(f"chains/{chain}/mint", contract=made[chain], token_id="1", to=holder)
    return made


@pytest.mark.parametrize("proved", CHAINS)
async def test_a_role_of_the_other_chain_is_not_given(town: Town, engine: Engine, proved: str) -> None:
    address = "0x" + secrets.token_hex(20)
    made = await collections(town, address)
    for chain, role in zip(CHAINS, ("Holder", "Collector"), strict=True):
        town.chain, town.contract = chain, made[chain]
        await town.rule(role)
    right, wrong = ("Holder", "Collector") if proved == CHAINS[0] else ("Collector", "Holder")
    await proves_contract(town, "carol", address, proved)
    async with engine():
        await given(town, "carol", right)
        assert not await town.has("carol", wrong)
        # The proof on the other chain adds what is held there.
        other = next(chain for chain in CHAINS if chain != proved)
        await proves_contract(town, "carol", address, other)
        await given(town, "carol", wrong)


async def test_why_a_role_is_missing_is_that_no_wallet_counts_there(town: Town, engine: Engine) -> None:
    address = "0x" + secrets.token_hex(20)
    made = await collections(town, address)
    town.chain, town.contract = "optimism", made["optimism"]
    await town.rule("Holder")
    town.chain, town.contract = "base", made["base"]
    await town.rule("Collector")
    await proves_contract(town, "carol", address, "base")
    async with engine():
        await given(town, "carol", "Collector")
    person = town.people["carol"]
    async with transaction() as db:
        user_id = await ensure(db, person["id"], person["username"])
        why = await explain.own(db, Actor(user_id, person["id"], person["username"]), town.server_id)
    said = {role.role_name: role.rules[0].requirements[0] for role in why.roles}
    assert not await town.has("carol", "Holder")
    assert (said["Holder"].outcome, said["Holder"].reason) == ("no", "no wallet on this chain counts here")
    assert (said["Collector"].outcome, said["Collector"].held) == ("yes", 1)


def test_a_scope_is_a_family_or_one_chain_of_it() -> None:
    wallets = [("evm", "0xa"), ("evm:base", "0xb"), ("evm:optimism", "0xc"), ("solana", "S"), ("evm:base", "0xa")]
    assert addresses_on("base", wallets) == ("0xa", "0xb")
    assert addresses_on("optimism", wallets) == ("0xa", "0xc")
    assert addresses_on("polygon", wallets) == ("0xa",)
    assert addresses_on("solana", wallets) == ("S",)
