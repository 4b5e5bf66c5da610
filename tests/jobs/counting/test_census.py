"""How many addresses hold a collection, counted from the sandbox's chains, and which of them are verified."""

import uuid
from collections import Counter
from typing import Any

import pytest
from sqlalchemy import text
from sqlmodel import col, select

from gateways import gateways
from jobs.census_taker import CensusTaker
from models import Census, CensusTurn, Reach, transaction
from models.db.session import AsyncSession
from services.collections.census import census_queue, count_by_transfers, owned_tokens, reach, reach_by_day
from services.collections.census import reach_numbers as numbers_of_rules
from services.rules.expression import Expression, parse
from services.rules.types import address_list_text, stored_address_lists
from tests.jobs.counting.counts import NOBODY, asked, forgotten, leaf, numbers, stale, view, worked
from tests.jobs.town import BOTH, STRANGER, Town, a_town
from tests.support.builders import a_server


async def ledger(town: Town, contract: str) -> dict[str, int]:
    """Return the amount of a collection that each address holds in the sandbox's world."""
    world = (await town.control.get("/control/world")).json()
    listed = next(one for one in world["chains"][town.chain]["collections"] if one["contract"] == contract)
    held = Counter[str]()
    for token in listed["tokens"]:
        for owner, amount in token["owners"].items():
            held[owner.lower()] += int(amount)
    return {owner: amount for owner, amount in held.items() if amount}


@pytest.mark.parametrize("place", [0, 1, 2], ids=["ERC-721", "with enumeration", "ERC-1155"])
async def test_holders_are_those_of_the_chains_own_collections(town: Town, place: int) -> None:
    world = (await town.control.get("/control/world")).json()
    contract = world["chains"]["base"]["collections"][place]["contract"]
    held = await ledger(town, contract)
    found = await numbers(town, leaf(town, contract=contract.lower()))
    assert (found.state, found.holders, found.reason) == ("done", len(held), None)
    several = await numbers(town, leaf(town, contract=contract.lower(), minTokens=2, maxTokens=3))
    assert several.holders == sum(1 for amount in held.values() if 2 <= amount <= 3)


async def test_a_rule_is_counted_by_address_with_its_verified_ones_and_its_block(town: Town) -> None:
    found = await numbers(town, leaf(town))
    assert (found.state, found.progress, found.holders, found.verified_here) == ("done", 1.0, 2, 1)
    (on_base,) = found.chains
    assert (on_base.chain, on_base.holders) == ("base", 2)
    assert on_base.block
    one, two = leaf(town, type="token_id", tokenIds=["1"]), leaf(town, minTokens=2)
    for document, holders, verified in (
        (two, 1, 1),
        (leaf(town, maxTokens=1), 1, 0),
        (leaf(town, type="token_id", tokenIds=["2-3"]), 2, 1),
        (one, 1, 1),
        ({"all": [leaf(town), {"not": two}]}, 1, 0),
        ({"any": [one, leaf(town, type="token_id", tokenIds=["3"])]}, 2, 1),
        ({"atLeast": {"n": 2, "of": [one, two, leaf(town, type="token_id", tokenIds=["9"])]}}, 1, 1),
    ):
        said = await numbers(town, document)
        assert (said.state, said.holders, said.verified_here) == ("done", holders, verified), document


async def test_a_later_count_reads_only_what_happened_since(town: Town) -> None:
    await numbers(town, leaf(town))
    await town.call("chains/base/mine", blocks=5)
    await stale()
    await numbers(town, leaf(town))
    await town.sells("1")
    await town.sells("3")
    await stale()
    found = await numbers(town, leaf(town))
    assert (found.holders, found.verified_here) == (2, 1)
    async with transaction() as db:
        (census,) = (await db.exec(select(Census))).all()
    # Three mints and two sales: nothing was counted twice.
    assert (census.moves, census.tokens) == (5, 3)


@pytest.mark.parametrize("targets", [BOTH, BOTH[1:]], ids=["both", "one"])
async def test_no_fault_of_the_nodes_makes_a_number(town: Town, targets: tuple[str, ...]) -> None:
    for kind in ("down", "429", "empty", "malformed"):
        await town.break_anew(kind, *targets)
        found = await numbers(town, leaf(town))
        said = (found.state, found.holders, found.verified_here, bool(found.reason))
        assert said == ("failed", None, None, True), kind
        await town.heal()
        assert (await numbers(town, leaf(town))).holders == 2, kind
        await forgotten()


@pytest.mark.parametrize("targets", [BOTH, BOTH[1:], BOTH[:1]], ids=["both", "second", "first"])
async def test_a_number_from_nodes_that_stopped_or_say_zero_is_right_at_its_block(
    town: Town, targets: tuple[str, ...]
) -> None:
    for kind, sold in (("stale", ("1", "2")), ("zero", ("3",))):
        await town.break_anew(kind, *targets)
        began = (await town.control.get("/control/world")).json()["chains"]["base"]["block"]
        before = len(await ledger(town, town.contract))
        for token in sold:
            await town.sells(token)
        found = await numbers(town, leaf(town))
        (on_base,) = found.chains or (None,)
        if found.state == "failed":
            assert (found.holders, bool(found.reason)) == (None, True)
        else:
            assert on_base is not None
            assert on_base.block is not None
            assert found.holders == (before if on_base.block <= began else len(await ledger(town, town.contract)))
        await town.heal()
        await stale()
        assert (await numbers(town, leaf(town))).holders == len(await ledger(town, town.contract)), kind
        await forgotten()


async def test_nodes_that_fall_silent_do_not_make_an_old_number_new(town: Town) -> None:
    assert (await numbers(town, leaf(town))).holders == 2
    await town.call("chains/base/mine", blocks=5)
    await stale()
    await numbers(town, leaf(town))
    for token in ("1", "2", "3"):
        await town.sells(token)
    await stale()
    await town.break_("empty", *BOTH)
    found = await numbers(town, leaf(town))
    assert (found.state, found.holders) == ("failed", None)
    assert found.chains[0].block
    await town.heal()
    assert (await numbers(town, leaf(town))).holders == 1


async def test_a_replaced_end_is_counted_again(town: Town) -> None:
    assert (await numbers(town, leaf(town))).holders == 2
    await town.call("chains/base/mint", contract=town.contract, token_id="50", to=NOBODY)
    await stale()
    assert (await numbers(town, leaf(town))).holders == 3
    await town.call("chains/base/reorg", depth=3)
    await stale()
    found = await numbers(town, leaf(town))
    assert (found.state, found.holders) == ("done", len(await ledger(town, town.contract)))


async def test_a_settled_block_with_another_hash_begins_the_count_again(town: Town) -> None:
    await town.call("chains/base/mine", blocks=5)
    assert (await numbers(town, leaf(town))).holders == 2
    async with transaction() as db:
        await db.execute(text("UPDATE census SET block_hash = '0xother'"))
        await db.execute(text("INSERT INTO census_token SELECT id, 0, :who, 77, 1 FROM census"), {"who": NOBODY})
    await stale()
    assert (await numbers(town, leaf(town))).holders == 2


async def test_what_a_killed_process_had_in_hand_goes_on_where_it_stood(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    await town.call("chains/base/mine", blocks=5)
    reach_id = await asked(town, leaf(town))
    monkeypatch.setattr(count_by_transfers, "STEPS_A_TURN", 1)
    await worked(1)
    async with transaction() as db:
        stood = (await db.exec(select(Census))).one().block
        killed = await census_queue.claim(db, "killed")
    assert killed is not None
    assert (stood > 0, await CensusTaker("other").once()) == (True, False)
    async with transaction() as db:
        await db.execute(text("UPDATE census SET held_until = now() - interval '1 second'"))
    await worked()
    found = await view(reach_id)
    assert (found.state, found.holders) == ("done", 2)
    async with transaction() as db:
        with pytest.raises(census_queue.CountTaken):
            await census_queue.update(db, killed, block=0)


async def test_more_tokens_than_a_count_keeps_are_said(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owned_tokens, "MOST_TOKENS", 2)
    await town.call("chains/base/mine", blocks=5)
    found = await numbers(town, leaf(town))
    assert (found.state, found.holders) == ("failed", None)
    assert found.reason is not None
    assert "More than 2 tokens" in found.reason


async def test_addresses_on_a_list_are_counted_alone_and_with_tokens(town: Town) -> None:
    read = await address_list_text.of_text(f"{town.wallet('carol')}\n{STRANGER}")
    listed = {"type": "address_list", "list": read.digest, "count": read.count}
    async with transaction() as db:
        await stored_address_lists.keep(db, town.server_id, [read])
    for document, holders, verified in (
        (listed, 2, 1),
        ({"all": [leaf(town), listed]}, 1, 1),
        ({"any": [listed, leaf(town)]}, 3, 1),
        ({"all": [leaf(town), {"not": listed}]}, 1, 0),
    ):
        said = await numbers(town, document)
        assert (said.state, said.holders, said.verified_here) == ("done", holders, verified), document
        assert [one.chain for one in said.chains] == (["base"] if document is not listed else [])
    gone = await numbers(town, listed | {"list": "f" * 32})
    assert (gone.state, gone.holders, gone.reason) == ("failed", None, stored_address_lists.GONE)


async def test_a_count_that_takes_too_long_ends_and_goes_on_when_it_is_asked_for_again(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    await town.call("chains/base/mine", blocks=5)
    reach_id = await asked(town, leaf(town))
    monkeypatch.setattr(count_by_transfers, "STEPS_A_TURN", 1)
    await worked(1)
    async with transaction() as db:
        await db.execute(text("UPDATE reach SET created_at = created_at - :longest"), {"longest": reach.LONGEST})
    await worked()
    found = await view(reach_id)
    assert (found.state, found.holders, "6 hours" in (found.reason or "")) == ("failed", None, True)
    async with transaction() as db:
        census = (await db.exec(select(Census))).one()
        assert (census.state, await census_queue.claim(db, "test")) == ("counting", None), "nobody waits for it"
    assert (await numbers(town, leaf(town))).holders == 2


async def test_counts_nobody_waits_for_make_room_and_a_server_has_its_share(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    await numbers(town, leaf(town))
    async with transaction() as db:
        await db.execute(text("UPDATE census SET tokens = 5, wanted_at = wanted_at - interval '1 hour'"))
    monkeypatch.setattr(census_queue, "MOST_KEPT", 4)
    async with transaction() as db:
        old = (await db.exec(select(Census))).one().id
    assert (await numbers(town, leaf(town, contract=STRANGER))).state == "failed"
    async with transaction() as db:
        assert old not in [one.id for one in (await db.exec(select(Census))).all()]
    monkeypatch.setattr(census_queue, "MOST_OF_A_SERVER", -1)
    found = await numbers(town, leaf(town))
    assert (found.state, found.holders, found.reason) == ("failed", None, count_by_transfers.NO_ROOM)
    monkeypatch.undo()
    assert (await numbers(town, leaf(town))).holders == 2


async def test_a_server_that_has_its_share_does_not_end_a_count_that_others_wait_for(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = await asked(town, leaf(town, contract=STRANGER))
    async with transaction() as db:
        await db.execute(text("UPDATE census SET tokens = 5, next_at = now() + interval '1 day'"))
        other = (await a_server(db)).id or 0
    mine = await asked(town, leaf(town))
    async with transaction() as db:
        theirs = await reach.start(db, other, parse(leaf(town)))
    monkeypatch.setattr(census_queue, "MOST_OF_A_SERVER", 4)
    await worked()
    assert [(await view(one)).state for one in (large, mine, theirs)] == ["counting", "failed", "done"]
    assert ((await view(mine)).reason, (await view(theirs)).holders) == (count_by_transfers.NO_ROOM, 2)


async def test_servers_get_their_numbers_in_turns(town: Town) -> None:
    await numbers(town, leaf(town))
    mine = [await asked(town, leaf(town, minTokens=least)) for least in (2, 3, 4)]
    async with transaction() as db:
        theirs = await reach.start(db, (await a_server(db)).id or 0, parse(leaf(town)))
    await worked(1)
    assert [(await view(one)).state for one in (*mine, theirs)] == ["counting", "counting", "counting", "done"]
    await worked()
    assert {(await view(one)).state for one in mine} == {"done"}


async def test_numbers_that_take_too_long_to_add_up_end_with_a_sentence(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def slow(db: AsyncSession, *_: object) -> None:
        await db.execute(text("SELECT pg_sleep(30)"))

    monkeypatch.setattr("services.collections.census.reach_numbers.count", slow)
    monkeypatch.setattr(reach, "COUNT_SECONDS", 1)
    found = await numbers(town, leaf(town))
    assert (found.state, found.reason) == ("failed", reach.TOO_SLOW)


async def test_what_cannot_be_counted_says_why_at_once(town: Town) -> None:
    for document in (
        {"type": "any_nft", "chain": "base"},
        leaf(town, type="trait", trait={"type": "Fur", "value": "Gold"}),
        {"type": "token", "chain": "base", "contract": "native", "min": "1", "decimals": 18},
        {"type": "token", "chain": "solana", "contract": STRANGER, "min": "1", "decimals": 9},
        {"not": leaf(town)},
        leaf(town, minTokens=0, maxTokens=2),
    ):
        found = await view(await asked(town, document))
        assert (found.state, found.holders, bool(found.reason)) == ("failed", None, True), document


async def test_a_contract_without_transfers_is_unknown(town: Town) -> None:
    found = await numbers(town, leaf(town, contract=STRANGER))
    assert (found.state, found.holders) == ("failed", None)


async def test_servers_take_turns(town: Town, sandbox_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(count_by_transfers, "STEPS_A_TURN", 0)
    first = [await asked(town, leaf(town, contract=f"0x{place:040x}")) for place in range(1, 6)]
    async with a_town(sandbox_url, "erin") as other:
        await asked(other, leaf(other))
        turns = list[int]()
        for _ in range(4):
            async with transaction() as db:
                task = await census_queue.claim(db, "test")
                assert task is not None
                turns.append(task.server_id)
            async with transaction() as db:
                await census_queue.give_back(db, task)
    assert turns == [town.server_id, other.server_id, town.server_id, other.server_id]
    assert len(first) == 5
    async with transaction() as db:
        assert len((await db.exec(select(CensusTurn))).all()) == 2


async def test_one_node_alone_makes_no_number(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(gateways().chains), "endpoints", lambda *_: 1)
    found = await numbers(town, leaf(town))
    assert (found.state, found.holders) == ("failed", None)


async def test_on_solana_the_holders_of_a_list_are_counted(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(count_by_transfers, "MOST_FAULTS", 1)
    contract = (await town.call("chains/solana/deploy", standard="Solana", name="Otters", slug=uuid.uuid4().hex))[
        "contract"
    ]
    wallets = [town.people[who]["wallets"]["solana"] for who in ("carol", "carol", "dave")]
    for place, wallet in enumerate(wallets):
        await town.call("chains/solana/mint", contract=contract, to=wallet, name=f"Otter {place}")
    found = await numbers(town, {"type": "basic", "chain": "solana", "contract": contract, "minTokens": 1})
    assert (found.state, found.holders) == ("done", 2)
    for kind in ("500", "empty", "zero"):
        await stale()
        await town.break_(kind, "solana")
        again = await numbers(town, {"type": "basic", "chain": "solana", "contract": contract, "minTokens": 1})
        assert (again.state, again.holders) in {("failed", None), ("done", 2)}, kind
        await town.heal()


async def test_a_count_begins_again_at_once_while_numbers_are_added_up_from_it(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = numbers_of_rules.count

    async def interrupted(*given: Any) -> numbers_of_rules.ReachNumbers:
        async with transaction() as db:
            await db.execute(text("SET LOCAL lock_timeout = '1s'"))
            await db.execute(text("UPDATE census SET state = 'counting'"))
            await db.execute(text("DELETE FROM census_token"))
        return await count(*given)

    monkeypatch.setattr(numbers_of_rules, "count", interrupted)
    reach_id = await asked(town, leaf(town))
    await worked(2)
    assert (await view(reach_id)).holders == 2


async def test_numbers_that_fail_by_an_error_of_our_own_keep_no_other_waiting(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    count, failing = numbers_of_rules.count, leaf(town, minTokens=2)

    async def poisoned(db: AsyncSession, tree: Expression, *given: Any) -> numbers_of_rules.ReachNumbers:
        if tree == parse(failing):
            raise ValueError("nobody foresaw this")
        return await count(db, tree, *given)

    monkeypatch.setattr(numbers_of_rules, "count", poisoned)
    await town.change(await town.rule("Holder"), expression=failing)
    first, second = await asked(town, failing), await asked(town, leaf(town))
    await worked()
    found = await view(first)
    assert (found.state, found.holders) == ("failed", None)
    assert "a fault of our own (ValueError)" in (found.reason or "")
    assert (await view(second)).holders == 2
    async with transaction() as db:
        await reach_by_day.begin_due(db)
        begun = await db.exec(select(Reach).where(col(Reach.daily)))
        assert begun.all() == [], "the rule is not counted again at once, before all other rules"


async def test_a_count_that_began_again_is_waited_for(town: Town) -> None:
    reach_id = await asked(town, leaf(town))
    await worked(1)
    async with transaction() as db:
        assert (await db.exec(select(Census))).one().state == "done"
        await db.execute(text("UPDATE census SET state = 'counting'"))
    async with transaction() as db:
        assert await reach.next_ended(db) is None
    assert (await view(reach_id)).state == "counting"
    await worked()
    assert (await view(reach_id)).holders == 2
