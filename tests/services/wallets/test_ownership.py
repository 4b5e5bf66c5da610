"""The owner of a wallet after several proofs of it."""

from typing import Any

import pytest
from sqlmodel import select

from gateways import gateways
from models import Challenge, Notice, SpentTransaction, Wallet, transaction
from services.core import queue
from services.core.actors import Actor
from services.privacy import erasure
from services.wallets import bio_proof, chain_checks, challenges, ownership, transaction_proof, wallets
from services.wallets.ownership import BY_BIO, GONE, HeldByAnother, PersonGone, WalletProof
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


async def erase(person: Actor) -> None:
    async with transaction() as db:
        await erasure.forget(db, person)


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


async def test_who_deletes_their_data_during_a_proof_has_no_wallet_afterwards(town: Town) -> None:
    alice, wallet = await actor(town, "carol"), address()
    async with transaction() as db:
        asked = await challenges.current(db, alice, "evm", wallet)
    async with transaction() as db:
        row = await db.get_one(Challenge, asked.id)
        await erase(alice)
        with pytest.raises(PersonGone):
            await ownership.keep(db, alice, row, KEY)
    async with transaction() as db:
        assert (await db.exec(select(Wallet))).all() == []


async def test_a_wallet_whose_owner_deletes_their_data_during_a_proof_is_the_other_persons(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice, bob, wallet, mark = await actor(town, "carol"), await actor(town, "dave"), address(), queue.mark_people
    await prove(alice, wallet, BIO)

    async def marked_too_late(*arguments: Any, **more: Any) -> None:
        monkeypatch.setattr(queue, "mark_people", mark)
        await erase(alice)
        await mark(*arguments, **more)

    monkeypatch.setattr(queue, "mark_people", marked_too_late)
    await prove(bob, wallet, KEY)
    assert (await stored(wallet)).user_id == bob.user_id
    async with transaction() as db:
        assert (await db.exec(select(Notice))).all() == []


@pytest.mark.parametrize("by_another", [False, True])
async def test_a_wallet_that_its_owner_removes_during_a_proof_is_the_provers(
    town: Town, monkeypatch: pytest.MonkeyPatch, by_another: bool
) -> None:
    alice, wallet, mark = await actor(town, "carol"), address(), queue.mark_people
    await prove(alice, wallet, BIO)
    removed = (await stored(wallet)).id or 0

    async def marked_too_late(*arguments: Any, **more: Any) -> None:
        monkeypatch.setattr(queue, "mark_people", mark)
        async with transaction() as db:
            await wallets.remove(db, alice, removed)
        await mark(*arguments, **more)

    monkeypatch.setattr(queue, "mark_people", marked_too_late)
    prover = await actor(town, "dave") if by_another else alice
    await prove(prover, wallet, KEY)
    assert (await stored(wallet)).user_id == prover.user_id
    async with transaction() as db:
        assert (await db.exec(select(Notice))).all() == [], "nobody lost a wallet to the proof"


@pytest.mark.parametrize("method", wallets.METHODS)
async def test_who_deletes_their_data_while_a_wallet_is_checked_reads_that_the_code_was_deleted(
    town: Town, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    alice, wallet = await actor(town, "carol"), town.wallet("carol")
    async with transaction() as db:
        code = (await wallets.challenge(db, gateways(), alice, wallet)).code
    await town.control.put(f"/control/opensea/accounts/{wallet}", json={"bio": code})

    async def erased_meanwhile(*_: Any) -> list[str]:
        await erase(alice)
        return []

    monkeypatch.setattr(bio_proof, "_contracts", erased_meanwhile)
    monkeypatch.setattr(chain_checks, "check_challenges", erased_meanwhile)
    async with transaction() as db:
        verdict = await wallets.verify(db, gateways(), alice, wallet, method)
    assert (verdict.success, verdict.message, verdict.again) == (False, GONE, False)


async def test_a_screen_that_waits_for_somebody_who_deleted_their_data_reads_so(town: Town) -> None:
    alice = await actor(town, "carol")
    async with transaction() as db:
        row = await challenges.current(db, alice, "evm", address())
        await db.commit()
        await erase(alice)
        assert (await transaction_proof.status(db, row)).message == GONE
        assert (await transaction_proof.verify(db, gateways(), [row], "")).message == GONE


async def test_one_accounts_part_of_a_bundle_is_spent_alone_whichever_version_stored_it(database: str) -> None:
    hash, one, other, earlier = f"0x{'ab' * 32}", address(), address(), address()
    key = ownership.spent_by(hash, one)
    assert one not in key
    async with transaction() as db:
        db.add_all([SpentTransaction(hash=key, chain="base"), SpentTransaction(hash=f"{hash}:{earlier}", chain="base")])
    async with transaction() as db:
        assert [await ownership.is_spent(db, hash, who) for who in (one, earlier, other)] == [True, True, False]
