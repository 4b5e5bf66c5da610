"""The owner of a wallet after several proofs of it."""

import pytest
from sqlmodel import select

from models import Challenge, Wallet, transaction
from services.core.actors import Actor
from services.wallets import challenges, ownership
from services.wallets.ownership import BY_BIO, HeldByAnother, WalletProof
from tests.jobs.conftest import product as product
from tests.jobs.conftest import town as town
from tests.jobs.town import Town
from tests.services.wallets.test_wallets import actor
from tests.support.builders import address

BIO = WalletProof(BY_BIO, {"marker": "code"}, strong=True)
KEY = WalletProof("transaction", {"marker": "amount"}, strong=True, spends=("0x" + 64 * "1", "base"))
CONTRACT = WalletProof("transaction", {}, strong=True, spends=("0x" + 64 * "2", "base"), chain="base")


async def prove(who: Actor, wallet: str, how: WalletProof) -> None:
    async with transaction() as db:
        asked = await challenges.current(db, who, "evm", wallet)
        await ownership.keep(db, who, await db.get_one(Challenge, asked.id), how)


async def stored(wallet: str) -> Wallet:
    async with transaction() as db:
        return (await db.exec(select(Wallet).where(Wallet.address == wallet))).one()


async def test_what_a_key_proved_after_a_bio_no_contract_account_takes(town: Town) -> None:
    alice, mallory, wallet = await actor(town, "carol"), await actor(town, "dave"), address()
    await prove(alice, wallet, BIO)
    first = await stored(wallet)
    await prove(alice, wallet, KEY)
    second = await stored(wallet)
    assert (second.id, second.method, second.evidence) == (first.id, "transaction", {"marker": "amount"})
    with pytest.raises(HeldByAnother):
        await prove(mallory, wallet, CONTRACT)
    assert (await stored(wallet)).user_id == alice.user_id


async def test_a_bio_after_a_key_changes_nothing(town: Town) -> None:
    alice, wallet = await actor(town, "carol"), address()
    await prove(alice, wallet, KEY)
    await prove(alice, wallet, BIO)
    assert (await stored(wallet)).method == "transaction"


async def test_proof_by_a_contract_after_a_bio_takes_no_chain_away(town: Town) -> None:
    alice, wallet = await actor(town, "carol"), address()
    await prove(alice, wallet, BIO)
    first = await stored(wallet)
    await prove(alice, wallet, CONTRACT)
    assert ((await stored(wallet)).id, (await stored(wallet)).chain) == (first.id, "")
