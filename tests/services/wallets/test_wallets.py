"""The owner of a wallet: what moves it to somebody else, and what OpenSea must answer for that."""

import json
import secrets
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import pytest
from aiohttp import web
from sqlmodel import col, update

from gateways import gateways, use_gateways
from gateways.marketplaces.opensea import OpenSea
from gateways.marketplaces.quota import LONGEST_PAUSE
from models import Challenge, Wallet, now, transaction
from services.accounts import users
from services.core.actors import Actor
from services.wallets import wallets
from services.wallets.ownership import LinkedProfile
from tests.jobs.conftest import product as product
from tests.jobs.conftest import town as town
from tests.jobs.town import Town

SHOWN = {0: "0x" + "aa" * 20}
"""The address that every profile of `opensea_of_another_wallet` names."""


async def actor(town: Town, who: str) -> Actor:
    person = town.people[who]
    async with transaction() as db:
        user_id = await users.ensure(db, person["id"], person["username"])
    return Actor(user_id, person["id"], person["username"])


async def says(town: Town, address: str, bio: str) -> None:
    answer = await town.control.put(f"/control/opensea/accounts/{address}", json={"bio": bio})
    assert answer.status_code == 200


async def links(town: Town, address: str, to: str) -> None:
    answer = await town.control.put(f"/control/opensea/accounts/{address}", json={"linked_to": to})
    assert answer.status_code == 200


async def verify(person: Actor, address: str) -> wallets.Verdict:
    async with transaction() as db:
        return await wallets.verify(db, gateways(), person, address, "opensea_bio")


async def code_of(person: Actor, address: str) -> str:
    async with transaction() as db:
        return (await wallets.challenge(db, gateways(), person, address)).code


async def held_by(person: Actor) -> list[str]:
    async with transaction() as db:
        return [wallet.wallet_address for wallet in await wallets.list_wallets(db, person)]


async def test_a_name_cannot_take_a_proved_wallet_over_but_a_code_can(town: Town) -> None:
    carol, dave = await actor(town, "carol"), await actor(town, "dave")
    address = town.wallet("carol")
    await says(town, address, f"holdfast:{carol.username}")
    assert (await verify(carol, address)).success
    await says(town, address, f"holdfast:{dave.username}")
    refused = await verify(dave, address)
    assert not refused.success
    assert "Somebody else verified this wallet" in refused.message
    assert await held_by(carol) == [address]
    await says(town, address, await code_of(dave, address))
    assert (await verify(dave, address)).success
    assert (await held_by(carol), await held_by(dave)) == ([], [address])


async def test_somebody_elses_code_in_the_own_bio_proves_nothing(town: Town) -> None:
    carol, dave = await actor(town, "carol"), await actor(town, "dave")
    address = town.wallet("carol")
    await says(town, address, await code_of(carol, address))
    assert not (await verify(dave, address)).success
    await says(town, address, await code_of(carol, town.wallet("dave")))
    assert not (await verify(carol, address)).success


async def test_a_code_is_used_up_by_success(town: Town) -> None:
    carol = await actor(town, "carol")
    address = town.wallet("carol")
    first = await code_of(carol, address)
    assert await code_of(carol, address) == first
    await says(town, address, first)
    assert (await verify(carol, address)).success
    assert await code_of(carol, address) != first


async def test_a_code_proves_nothing_after_its_day_and_is_replaced_before_it_ends(town: Town) -> None:
    carol = await actor(town, "carol")
    address = town.wallet("carol")
    first = await code_of(carol, address)
    await says(town, address, first)
    async with transaction() as db:
        await db.exec(update(Challenge).values(expires_at=now() - timedelta(seconds=1)))
    assert not (await verify(carol, address)).success
    second = await code_of(carol, address)
    assert second != first
    async with transaction() as db:
        await db.exec(update(Challenge).values(expires_at=now() + timedelta(minutes=9)))
    assert await code_of(carol, address) != second, "one that is about to end is not shown"


@pytest.mark.parametrize("kind", ["down", "429", "malformed"])
async def test_a_provider_in_trouble_is_try_again_and_never_a_verdict(town: Town, kind: str) -> None:
    carol = await actor(town, "carol")
    await town.break_(kind, "opensea")
    verdict = await verify(carol, town.wallet("carol"))
    assert (verdict.success, verdict.again) == (False, True)
    assert "OpenSea" in verdict.message


async def test_a_linked_wallet_is_not_proved_by_the_profile_that_shows_it(town: Town) -> None:
    carol = await actor(town, "carol")
    main, linked = ("0x" + secrets.token_hex(20) for _ in range(2))
    name = f"n{secrets.token_hex(5)}"
    await town.control.put(f"/control/opensea/accounts/{main}", json={"username": name})
    await links(town, linked, main)
    for said in (await code_of(carol, linked), f"holdfast:{carol.username}"):
        await says(town, main, said)
        verdict = await verify(carol, linked)
        assert (verdict.success, verdict.again, verdict.linked) == (
            False, False, LinkedProfile(main, name, gateways().opensea.profile_url(main)),
        )  # fmt: skip
        assert f"put its code into the bio of {name}" in verdict.message
        assert "choose Transaction Proof" in verdict.message
        assert await held_by(carol) == []
    await says(town, main, await code_of(carol, main))
    assert (await verify(carol, main)).success
    assert not (await verify(carol, linked)).success
    await links(town, linked, "")
    await says(town, linked, await code_of(carol, linked))
    assert (await verify(carol, linked)).success
    assert await held_by(carol) == [main, linked]


async def test_looks_that_overlap_tell_the_same(town: Town) -> None:
    carol, dave = await actor(town, "carol"), await actor(town, "dave")
    address = town.wallet("carol")
    await says(town, address, await code_of(carol, address))
    assert (await verify(carol, address)).success
    assert (await verify(carol, address)).success
    assert not (await verify(dave, address)).success


async def test_a_verified_wallet_needs_no_other_code_and_a_transaction_still_adds_to_a_bio(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wallets, "JUST", timedelta())
    carol, dave = await actor(town, "carol"), await actor(town, "dave")
    address = town.wallet("carol")
    await says(town, address, await code_of(carol, address))
    assert (await verify(carol, address)).success
    await says(town, address, "my code is gone")
    assert (await verify(carol, address)).success
    assert not (await verify(dave, address)).success
    async with transaction() as db:
        assert not await wallets.is_verified(db, carol, "evm", address, wallets.TRANSACTION)
        await db.exec(update(Wallet).where(col(Wallet.address) == address).values(method=wallets.TRANSACTION))
        assert await wallets.is_verified(db, carol, "evm", address, wallets.TRANSACTION)
        await db.exec(update(Wallet).where(col(Wallet.address) == address).values(chain="base"))
        assert not await wallets.is_verified(db, carol, "evm", address, wallets.TRANSACTION)


async def test_a_challenge_is_open_until_it_expires_and_a_proof_is_remembered_for_a_moment(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    carol = await actor(town, "carol")
    address = town.wallet("carol")

    async def is_open(claimed: str = address) -> bool:
        async with transaction() as db:
            return await wallets.has_open_challenge(db, carol, claimed)

    assert not await is_open()
    assert not await is_open("nonsense")
    await says(town, address, await code_of(carol, address))
    assert await is_open()
    assert (await verify(carol, address)).success
    assert await is_open()
    monkeypatch.setattr(wallets, "JUST", timedelta())
    assert not await is_open()
    await code_of(carol, address)
    async with transaction() as db:
        await db.exec(update(Challenge).values(expires_at=now() - timedelta(seconds=1)))
    assert not await is_open()


async def test_without_reads_nothing_is_proved_and_the_other_way_is_offered(town: Town) -> None:
    carol = await actor(town, "carol")
    address = town.wallet("carol")
    await says(town, address, await code_of(carol, address))
    no_more = {"target": "opensea", "left": 0, "seconds": 900}
    try:
        assert (await town.control.put("/control/limits", json=no_more)).status_code == 200
        for _ in range(2):
            verdict = await verify(carol, address)
            assert (verdict.success, verdict.again) == (False, True)
            assert "OpenSea lets us look at no more profiles right now. Please try again in 1" in verdict.message
            assert "Or choose Transaction Proof" in verdict.message
            assert 0 < verdict.wait <= LONGEST_PAUSE
        async with transaction() as db:
            view = await wallets.challenge(db, gateways(), carol, address)
        assert view.shortage.startswith("OpenSea lets us look at no more profiles right now; we can look again in 1")
    finally:
        await town.control.delete("/control/limits")


@pytest.fixture
async def opensea_of_another_wallet() -> AsyncIterator[str]:
    """A marketplace that answers every question with the profile of a linked wallet."""

    async def profile(_: web.Request) -> web.Response:
        body = {
            "address": SHOWN[0], "username": "x", "bio": "holdfast:*", "joined_date": "2024-01-01",
            "follower_count": 0, "following_count": 0, "is_verified": False, "social_media_accounts": [],
        }  # fmt: skip
        return web.Response(text=json.dumps(body), content_type="application/json")

    app = web.Application()
    app.router.add_get("/{path:.*}", profile)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        ("0x" + "aa" * 20, "put its code into the bio of x (0xaaaa...aaaa)"),
        ("11111111111111111111111111111111", "to the profile of x (111111...1111), which cannot verify it"),
        ("nonsense", "answered with the profile of another wallet"),
    ],
)
async def test_a_profile_that_names_another_wallet_speaks_for_that_one_only(
    town: Town, opensea_of_another_wallet: str, monkeypatch: pytest.MonkeyPatch, shown: str, said: str
) -> None:
    carol = await actor(town, "carol")
    ours = gateways()
    elsewhere = OpenSea(opensea_of_another_wallet, opensea_of_another_wallet, None)
    monkeypatch.setitem(SHOWN, 0, shown)
    use_gateways(replace(ours, opensea=elsewhere))
    verdict = await verify(carol, town.wallet("carol"))
    use_gateways(ours)
    await elsewhere.close()
    assert (verdict.success, verdict.again) == (False, False)
    assert said in verdict.message
    assert "ransaction Proof" in verdict.message
