"""Rules that count NFTs delegated by vaults: each NFT counts for one member, and unknown is never read as no."""

import asyncio
from dataclasses import replace

import pytest
from sqlalchemy import text
from sqlmodel import col, delete, select

from gateways.chains.catalogue import CHAINS
from jobs.following.follower import Follower
from jobs.reconciler import Reconciler
from locales.stored_texts import said
from models import Due, Grant, Member, Wallet, transaction
from services.accounts.users import ensure
from services.collections import standards
from services.core import queue
from services.core.actors import Actor
from services.guilds import members
from services.holdings import delegations
from services.rules.expression import AtLeast, Not, Requirement, to_document
from services.servers import explain
from services.triggers import sightings
from services.triggers.chain_cursor import ANY
from services.triggers.sightings import Marks, Moved
from services.triggers.watch_list import Watched, WatchList
from services.wallets import wallets
from tests.jobs.conftest import Engine
from tests.jobs.deciding.sources.conftest import one_node, settles_after
from tests.jobs.deciding.vaults import NO, NODES, UNKNOWN, YES, Bank, a_vault, known, settled, wallets_of
from tests.jobs.town import STRANGER, Town, until
from tests.jobs.watching import given, looked_at, taken


@pytest.fixture
async def bank(town: Town) -> Bank:
    await town.prove("carol")
    await town.prove("dave")
    return Bank(town)


async def test_what_a_vault_holds_counts_through_its_delegation_until_it_is_sold(
    town: Town, bank: Bank, engine: Engine
) -> None:
    vault = a_vault()
    token = await bank.puts(vault)
    await bank.delegates(vault, "carol")
    await town.rule("Collector")
    await town.rule("Holder", delegated=True)
    carol = town.people["carol"]
    async with engine():
        await given(town)
        assert not await town.has("carol", "Collector"), "this rule does not count what is delegated"
        async with transaction() as db:
            actor = Actor(await ensure(db, carol["id"], carol["username"]), carol["id"], carol["username"])
            told = await explain.own(db, actor, town.server_id)
            grant = (await db.exec(select(Grant).where(Grant.server_id == town.server_id))).one()
        (asked,) = next(role for role in told.roles if role.role_name == "Holder").rules[0].requirements
        assert asked.held == 1
        assert asked.wallet is not None
        assert f"through delegation from {vault[:6]}" in asked.wallet
        assert grant.evidence["readings"][0]["delegated"] == "1"
        await bank.sells(vault, token)
        await town.look()

        async def gone() -> bool:
            return not await town.has("carol", "Holder")

        await until(gone)


async def test_a_withdrawn_delegation_takes_the_role_after_a_second_look(
    town: Town, bank: Bank, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault = a_vault()
    await bank.puts(vault)
    await bank.delegates(vault, "carol")
    await town.rule("Holder", delegated=True)
    async with engine():
        await given(town)
        await bank.withdraws(vault, "carol")
        start = await town.mark()
        await bank.looks_again("carol")

        async def gone() -> bool:
            return not await town.has("carol", "Holder")

        await until(gone)
    asked = [len([one for one in await town.requests(start, node) if one["rpc_method"]]) for node in NODES]
    assert all(asked), "both nodes are asked before something is taken"


@pytest.mark.parametrize("wanted_too", [False, True])
async def test_a_strangers_delegation_takes_no_role_by_what_must_not_be_held(
    town: Town, bank: Bank, engine: Engine, wanted_too: bool
) -> None:
    leaf, many = (Requirement("basic", "base", town.contract, least) for least in (1, 5))
    tree = AtLeast(1, (AtLeast(2, (leaf, many)), Not(leaf))) if wanted_too else Not(leaf)
    await town.change(await town.rule("Holder", delegated=True), expression=to_document(tree))
    async with engine():
        await given(town)
        vault = a_vault()
        await bank.puts(vault)
        await bank.delegates(vault, "carol")
        await bank.looks_again("carol")
        await until(lambda: known(town, vault, "carol"))
        await until(lambda: settled(town))
        async with transaction() as db:
            states = (await db.exec(select(Grant.state).where(Grant.server_id == town.server_id))).all()
        assert set(states) == {"held"}
        assert await town.has("carol", "Holder")


async def test_an_owner_goes_before_a_delegate_and_the_oldest_claim_before_a_younger(
    town: Town, bank: Bank, engine: Engine
) -> None:
    vault = a_vault()
    town.people["ada"]["wallets"]["evm"] = vault
    await bank.puts(vault)
    await bank.delegates(vault, "carol")
    await town.rule("Holder", delegated=True)

    async def only(*who: str) -> bool:
        return {name for name in town.people if await town.has(name, "Holder")} == set(who)

    async with engine():
        await until(lambda: only("carol"))
        await bank.delegates(vault, "dave")
        await bank.looks_again("dave")
        await until(lambda: known(town, vault, "dave"))
        await until(lambda: settled(town))
        assert await only("carol"), "the claim that is older goes first"
        await wallets_of(town, "ada", vault)
        await until(lambda: only("ada"))
        async with transaction() as db:
            ada = town.people["ada"]
            actor = Actor(await ensure(db, ada["id"], ada["username"]), ada["id"], ada["username"])
            (mine,) = await wallets.list_wallets(db, actor)
            await wallets.remove(db, actor, mine.id)
        await until(lambda: only("carol"))
        await bank.withdraws(vault, "carol")
        await bank.looks_again("carol")
        await until(lambda: only("dave"))


@pytest.mark.parametrize(("withdrawn", "state"), [(True, "held"), (False, "taking")])
async def test_somebody_elses_older_claim_takes_a_role_only_if_the_second_reading_names_it_too(
    town: Town, bank: Bank, engine: Engine, withdrawn: bool, state: str
) -> None:
    """Dave comes back with a claim that was read before he left, and Carol is reconciled before him."""
    vault = a_vault()
    await bank.puts(vault)
    await town.rule("Holder", delegated=True)
    async with engine():
        for who in ("dave", "carol"):
            await bank.delegates(vault, who)
            await bank.looks_again(who)
            await until(lambda who=who: known(town, vault, who))
        await given(town, "dave")
        async with transaction() as db:
            await members.left_many(db, [(town.server_id, town.people["dave"]["id"])])
        await given(town)
        await until(lambda: settled(town))
    if withdrawn:
        await bank.withdraws(vault, "dave")
    await town.call("chains/base/mine", blocks=5)
    await town.see()
    async with transaction() as db:
        await db.execute(text("DELETE FROM due"))
        await queue.mark_member(db, town.server_id, town.people["carol"]["id"], queue.SWEPT)
    await Reconciler(asyncio.Event()).once()
    async with transaction() as db:
        carols = select(Grant.state).where(Grant.discord_id == town.people["carol"]["id"])
        assert (await db.exec(carols)).all() == [state]
    assert await known(town, vault, "dave") is not withdrawn, "what the second reading shows is stored"


async def test_a_wallet_of_ones_own_counts_once_even_for_a_member_who_is_not_stored_yet(town: Town, bank: Bank) -> None:
    own, leaf = a_vault(), Requirement("basic", "base", town.contract, 2)
    await bank.puts(own)
    await bank.delegates(own, "carol")
    async with transaction() as db:
        user_id = await ensure(db, town.people["carol"]["id"], town.people["carol"]["username"])
        db.add(Wallet(user_id=user_id, family="evm", address=own, method="opensea_bio"))
    for stored in (True, False):
        if not stored:
            async with transaction() as db:
                await db.exec(delete(Member).where(col(Member.discord_id) == town.people["carol"]["id"]))
        said = (await bank.answers(leaf))["carol"]
        assert (said.answer, said.held) == (NO, 1), f"stored: {stored}"


async def test_who_has_left_has_no_claim_and_is_asked_about_no_more(town: Town, bank: Bank, engine: Engine) -> None:
    vault = a_vault()
    await bank.puts(vault)
    await town.rule("Holder", delegated=True)
    async with engine():
        for who in ("carol", "dave"):
            await bank.delegates(vault, who)
            await bank.looks_again(who)
            await until(lambda who=who: known(town, vault, who))
        await given(town)
        async with transaction() as db:
            await members.left_many(db, [(town.server_id, town.people["carol"]["id"])])
        await given(town, "dave")
        await until(lambda: settled(town))
    people = [town.people[who]["id"] for who in ("carol", "dave")]
    async with transaction() as db:
        for who in people:
            await queue.mark_member(db, town.server_id, who, queue.SWEPT)
    await Reconciler(asyncio.Event()).once()
    async with transaction() as db:
        rows = (await db.exec(select(Grant).where(Grant.server_id == town.server_id))).all()
        left = await db.get(Due, ("member", f"{town.server_id}:{people[0]}"))
    assert [(row.discord_id, row.state) for row in rows] == [(people[1], "held")]
    assert left is None


async def test_contracts_tokens_and_amounts_are_shared_out_whatever_a_rule_asks(town: Town, bank: Bank) -> None:
    vault, many = a_vault(), await bank.deploys_many()
    async with transaction() as db:
        # As a new rule does. Otherwise a reconcile asks for it, for a few seconds at most, and then once a minute.
        await standards.remember(db, {("base", many): "ERC1155"})
    one, two, three = [await bank.puts(vault) for _ in range(3)]
    some = await bank.puts(vault, 5, many)
    await town.call("chains/base/traits", contract=town.contract, token_id=one, traits={"Fur": "Gold"})
    await town.call("chains/base/traits", contract=town.contract, token_id=two, traits={"Fur": "Gold"})
    await bank.delegates(vault, "dave", contract=town.contract, token_id=one)
    basic = Requirement("basic", "base", town.contract)
    assert await bank.held(basic) == {"ada": 0, "carol": 0, "dave": 1}
    await bank.delegates(vault, "carol", contract=town.contract)
    expected = {
        basic: (2, 1),
        Requirement("basic", "base", many): (0, 0),
        Requirement("token_id", "base", town.contract, token_ids=(one,)): (0, 1),
        Requirement("token_id", "base", town.contract, token_ids=(f"{one}-{three}",)): (2, 1),
        Requirement("trait", "base", town.contract, traits=(("fur", "gold"),)): (1, 1),
        Requirement("any_nft", "base", "any"): (2, 1),
    }
    for leaf, (carol, dave) in expected.items():
        assert await bank.held(leaf) == {"ada": 0, "carol": carol, "dave": dave}, leaf
    await bank.delegates(vault, "dave")
    assert await bank.held(Requirement("basic", "base", many)) == {"ada": 0, "carol": 0, "dave": 5}
    assert await bank.held(Requirement("token_id", "base", many, token_ids=(some,))) == {
        "ada": 0, "carol": 0, "dave": 5,
    }  # fmt: skip
    assert (await bank.answers(Requirement("any_nft", "base", "any")))["dave"].answer is YES
    assert await bank.held(basic) == {"ada": 0, "carol": 2, "dave": 1}, "what is older stays as it is"
    assert await bank.held(basic, delegated=False) == {"ada": 0, "carol": 0, "dave": 0}


async def test_a_token_counts_only_if_it_was_delegated_as_what_it_is(town: Town, bank: Bank) -> None:
    """It follows the registry's own checks: checkDelegateForERC721 and checkDelegateForERC1155."""
    vault, many = a_vault(), await bank.deploys_many()
    some, one = await bank.puts(vault, 5, many), await bank.puts(vault)
    async with transaction() as db:
        await standards.remember(db, {("base", many): "ERC1155", ("base", town.contract): "ERC721"})
    of_many, of_one = Requirement("basic", "base", many), Requirement("basic", "base", town.contract)
    as_one, as_many = (
        "delegateERC721(address,address,uint256,bytes32,bool)",
        "delegateERC1155(address,address,uint256,bytes32,uint256)",
    )
    carol, nothing = town.wallet("carol"), {"ada": 0, "carol": 0, "dave": 0}
    await bank.tells_the_registry(vault, as_one, carol, many, int(some), 0, 1)
    await bank.tells_the_registry(vault, as_many, carol, town.contract, int(one), 0, 3)
    assert await bank.held(of_many) == nothing
    assert await bank.held(of_one) == nothing
    await bank.tells_the_registry(vault, as_many, carol, many, int(some), 0, 3)
    await bank.tells_the_registry(vault, as_one, carol, town.contract, int(one), 0, 1)
    assert await bank.held(of_many) == nothing | {"carol": 3}
    assert await bank.held(of_one) == nothing | {"carol": 1}


async def test_a_delegation_that_comes_and_goes_moves_the_role_without_a_sweep(
    town: Town, bank: Bank, engine: Engine
) -> None:
    vault, follower = a_vault(), Follower("base")
    await bank.puts(vault)
    await town.rule("Holder", delegated=True)
    async with engine():
        await until(lambda: settled(town))

        async def followed(wanted: bool) -> bool:
            await follower.once()
            return await town.has("carol", "Holder") is wanted

        assert await followed(False)
        await bank.delegates(vault, "carol")
        await until(lambda: followed(True))
        await until(lambda: settled(town))
        await bank.withdraws(vault, "carol")
        await until(lambda: followed(False))


async def test_delegations_with_other_rights_count_nothing_and_with_ours_they_do(town: Town, bank: Bank) -> None:
    theirs, ours = a_vault(), a_vault()
    await bank.puts(theirs)
    await bank.delegates(theirs, "carol", rights="0x" + b"somebody else".hex())
    basic = Requirement("basic", "base", town.contract)
    assert (await bank.answers(basic))["carol"].answer is NO
    await bank.puts(ours)
    await bank.delegates(ours, "carol", rights="0x" + b"holdfast".hex())
    assert (await bank.answers(basic))["carol"].answer is YES


async def test_a_registry_that_cannot_be_read_makes_no_no(town: Town, bank: Bank) -> None:
    vault = a_vault()
    await bank.puts(vault)
    basic = Requirement("basic", "base", town.contract)
    await bank.delegates(vault, "carol")
    for kind in ("down", "empty", "zero", "stale"):
        await town.heal()
        async with transaction() as db:
            for table in ("delegation", "delegation_read", "observation"):
                await db.execute(text(f"DELETE FROM {table}"))
        if kind == "stale":
            assert (await bank.answers(basic))["carol"].answer is YES
        await town.break_anew(kind, *NODES)
        assert (await bank.answers(basic))["carol"].answer is not NO, kind
        await town.heal()
        assert (await bank.answers(basic))["carol"].answer is YES, kind
        await town.break_(kind, *NODES)
        assert (await bank.answers(basic))["carol"].answer is not NO, kind


async def test_a_transfer_of_a_vault_marks_the_members_who_count_it(town: Town, bank: Bank) -> None:
    vault = a_vault()
    await bank.delegates(vault, "carol")
    await bank.answers(Requirement("basic", "base", town.contract))
    anything = to_document(Requirement("any_nft", "base", "any"))
    async with transaction() as db:
        assert vault not in (await WatchList().read(db)).get("base", Watched()).wallets
    await town.change(await town.rule("Holder"), expression=anything, delegated=True)
    async with transaction() as db:
        watched = await WatchList().read(db)
        assert vault in watched["base"].wallets
        for row in (await db.exec(select(Due))).all():
            await db.delete(row)
    async with transaction() as db:
        moved = [Moved(ANY, vault, 7), Moved(ANY, STRANGER, 7)]
        sightings.record_moves(db, "base", moved, watched["base"].servers, Marks(), 0.0)
        keys = {row.key for row in (await db.exec(select(Due))).all()}
        assert keys == {f"{town.server_id}:{town.people['carol']['id']}"}
    async with transaction() as db:
        for row in (await db.exec(select(Due))).all():
            await db.delete(row)
    async with transaction() as db:
        sightings.record_moves(db, "polygon", [Moved(ANY, vault, 7)], watched["base"].servers, Marks(), 0.0)
        assert (await db.exec(select(Due))).all() == []


async def test_a_list_that_is_too_long_leaves_the_rest_unknown(
    town: Town, bank: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delegations, "MOST_KEPT", 1)
    first, second = a_vault(), a_vault()
    await bank.delegates(first, "carol")
    await bank.delegates(second, "carol")
    await bank.puts(second)
    basic = Requirement("basic", "base", town.contract)
    assert (await bank.answers(basic))["carol"].answer is UNKNOWN
    await bank.puts(first)
    assert (await bank.answers(basic))["carol"].answer is YES


async def test_a_single_node_confirms_while_what_it_said_of_delegations_is_fresh(
    town: Town, bank: Bank, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It works after any number of failed attempts, because reading again would mean waiting from the start."""
    await one_node(monkeypatch)
    settles_after(monkeypatch, 30)
    await town.call("chains/base/mine", blocks=30)
    vault = a_vault()
    token = await bank.puts(vault)
    await bank.delegates(vault, "carol")
    await town.rule("Holder", delegated=True)
    async with engine():
        await given(town)
    await bank.sells(vault, token)
    await town.call("chains/base/mine", blocks=30)
    await town.look()
    async with transaction() as db:
        await db.execute(text("UPDATE due SET attempts = 12"))
        # Too old to be used again: this reconcile reads it, and the node has not settled any of it yet.
        await db.execute(text("UPDATE delegation_read SET read_at = to_timestamp(0)"))
    await Reconciler(asyncio.Event()).once()
    async with transaction() as db:
        row = (await db.exec(select(Due).where(col(Due.key).startswith(f"{town.server_id}:")))).one()
        soon = await db.execute(
            text("SELECT due_at - now() < interval '10 minutes' FROM due WHERE key = :key"), {"key": row.key}
        )
        assert "delegations: waiting for a later block to confirm" in said(row.reason or "")
        assert soon.scalar_one() is True
    await town.call("chains/base/mine", blocks=30)
    await looked_at(town)
    async with transaction() as db:
        assert set((await db.exec(select(Grant.state).where(Grant.server_id == town.server_id))).all()) == {"taking"}


async def test_a_holder_by_delegation_keeps_the_role_when_the_registry_is_removed_from_the_settings(
    town: Town, bank: Bank, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault = a_vault()
    await bank.puts(vault)
    await bank.delegates(vault, "carol")
    own = await town.buys("dave")
    rule_id = await town.rule("Holder", delegated=True)
    async with engine():
        await given(town)
        await given(town, "dave")
        monkeypatch.setitem(CHAINS, "base", replace(CHAINS["base"], delegates=None))
        await town.sells(own)
        await town.look()
        await taken(town, "dave")
        assert await town.has("carol", "Holder")
    leaf = Requirement("basic", "base", town.contract)
    said = await bank.answers(leaf)
    assert {who: one.answer for who, one in said.items()} == {"ada": NO, "carol": UNKNOWN, "dave": NO}
    async with engine():
        await town.change(rule_id, delegated=False)
        await taken(town)
