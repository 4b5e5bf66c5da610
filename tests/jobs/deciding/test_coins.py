"""Roles for coins: given for enough of them, kept through every fault, and taken when they are spent."""

import uuid
from typing import Any

import pytest

from gateways import gateways
from gateways.chains.balance_sheet import NATIVE
from models import now, transaction
from services.core.actors import Actor
from services.core.answer import Answer
from services.core.queue import Claim
from services.engine import cases, ledger, read_and_confirm
from services.holdings import last_known
from services.holdings.evaluate import Reading
from services.rules.expression import AtLeast, Not, Requirement, to_document
from services.rules.rule_terms import RuleTerms
from services.rules.types.coin import CoinAmount
from services.servers import explain
from tests.jobs.conftest import Engine
from tests.jobs.town import BOTH, STRANGER, Town
from tests.jobs.watching import given, grants, looked_at, taken

YES, NO, UNKNOWN = Answer.YES, Answer.NO, Answer.UNKNOWN
WHALE = 10**18 * 2_000


class Coin:
    """The town's own coin on Base, and what people do with it."""

    def __init__(self, town: Town, contract: str, decimals: int) -> None:
        self.town, self.contract, self.decimals = town, contract, decimals

    async def act(self, action: str, amount: int, **body: Any) -> None:
        await self.town.call(f"chains/base/{action}", contract=self.contract, amount=str(amount), **body)

    async def buys(self, who: str, whole: int) -> None:
        await self.act("mint", whole * 10**self.decimals, to=self.town.wallet(who))

    async def spends(self, who: str, units: int) -> None:
        await self.act("transfer", units, to=STRANGER, **{"from": self.town.wallet(who)})

    def leaf(self, least: str | None = None, most: str | None = None) -> Requirement:
        return Requirement("token", "base", self.contract, details=CoinAmount(least, most, self.decimals))


async def a_coin(town: Town, decimals: int = 6, **more: Any) -> Coin:
    slug = uuid.uuid4().hex
    made = await town.call(
        "chains/base/deploy", standard="ERC20", name="Town Dollar", slug=slug, decimals=decimals, **more
    )
    return Coin(town, made["contract"], decimals)


async def read(town: Town, *leaves: Requirement, who: str = "carol") -> list[Reading]:
    """Return one reconcile's reading of a member, after checking that the stored answer is the same."""
    claim = Claim(town.server_id, town.people[who]["id"], 0, 0, 0)
    terms = [RuleTerms(number, "role", leaf, "active") for number, leaf in enumerate(leaves)]
    async with transaction() as db:
        batch = await cases.load(db, [claim], {town.server_id: terms})
        wanted = await read_and_confirm.questions(db, batch)
    done = await read_and_confirm.decide_cases(gateways(), batch, wanted, now())
    (item,) = done.outcomes
    async with transaction() as db:
        await ledger.remember(db, done)
        memory = await last_known.load(db, leaves, [address for _, address in item.case.wallets])
    found = [item.readings[number][0] for number in range(len(leaves))]
    for leaf, one in zip(leaves, found, strict=True):
        told = last_known.recall(leaf, item.case.wallets, memory)
        if one.answer is not UNKNOWN:
            assert (told.answer, told.held) == (one.answer, one.held), leaf
    return found


@pytest.mark.parametrize("decimals", [0, 6, 18, 30])
async def test_amounts_are_compared_in_the_smallest_unit(town: Town, decimals: int) -> None:
    coin = await a_coin(town, decimals)
    await town.prove("carol")
    await coin.act("mint", 100 * 10**decimals, to=town.wallet("carol"))
    leaves = [coin.leaf("100"), coin.leaf("101"), coin.leaf(None, "100"), coin.leaf(None, "99"), coin.leaf("1", "100")]
    assert [one.answer for one in await read(town, *leaves)] == [YES, NO, YES, NO, YES]
    await coin.spends("carol", 1)
    found = await read(town, *leaves)
    assert [one.answer for one in found] == [NO, NO, YES, YES if decimals == 0 else NO, YES]
    assert found[0].held == 100 * 10**decimals - 1
    document = found[0].document()
    assert document["needed"] == "100"
    assert document["held"] == ("99" if decimals == 0 else "99.9"), "rounded, and still too little"


async def test_amounts_add_up_over_wallets_as_integers(town: Town) -> None:
    coin = await a_coin(town, 18)
    await town.prove("carol")
    first = town.wallet("carol")
    town.people["carol"]["wallets"]["evm"] = f"0x{uuid.uuid4().hex}{'ab' * 4}"
    await town.prove("carol")
    # Numbers that are equal once rounded to a float.
    await coin.act("mint", 10**20 + 1, to=first)
    await coin.act("mint", 10**20, to=town.wallet("carol"))
    exact, above = coin.leaf("200." + "0" * 17 + "1"), coin.leaf("200." + "0" * 17 + "2")
    assert [one.answer for one in await read(town, exact, above)] == [YES, NO]


async def test_the_own_coin_counts_and_coins_are_no_nfts(town: Town) -> None:
    coin = await a_coin(town)
    await town.prove("carol")
    await town.prove("dave")
    await coin.buys("carol", 5)
    await town.call("chains/base/send", value_wei=str(WHALE), to=town.wallet("carol"), **{"from": STRANGER})
    native = Requirement("token", "base", NATIVE, details=CoinAmount("1500.5", None, 18))
    anything = Requirement("any_nft", "base", "any")
    found = await read(town, native, coin.leaf("5"), anything)
    assert [one.answer for one in found] == [YES, YES, NO]
    assert found[0].held is not None
    assert found[0].held >= WHALE
    assert [one.answer for one in await read(town, native, coin.leaf("5"), who="dave")] == [NO, NO]


async def test_no_fault_of_the_nodes_makes_a_no(town: Town) -> None:
    coin = await a_coin(town)
    await town.prove("carol")
    await coin.buys("carol", 100)
    await town.call("chains/base/send", value_wei=str(WHALE), to=town.wallet("carol"), **{"from": STRANGER})
    native = Requirement("token", "base", NATIVE, details=CoinAmount("1", None, 18))
    for kind in ("down", "429", "empty", "zero", "malformed", "stale"):
        await town.break_anew(kind, *BOTH)
        found = await read(town, coin.leaf("100"), coin.leaf(None, "100"), native)
        assert NO not in {one.answer for one in found}, kind


async def test_a_coin_whose_decimals_are_not_known_is_unknown(town: Town) -> None:
    coin = await a_coin(town)
    await town.prove("carol")
    await coin.buys("carol", 100)
    unasked = Requirement("token", "base", coin.contract, details=CoinAmount("1"))
    (found,) = await read(town, unasked)
    assert (found.answer, found.reason) == (UNKNOWN, "the coin's decimals are not known")


async def test_a_role_for_a_coin_comes_stays_through_faults_and_goes_with_the_coin(town: Town, engine: Engine) -> None:
    coin = await a_coin(town)
    await coin.buys("carol", 100)
    await town.change(await town.rule("Holder"), expression=to_document(coin.leaf("100")))
    async with engine():
        await town.prove("carol")
        await given(town)
    since = await town.mark()
    for kind in ("down", "zero", "empty", "stale"):
        await town.break_anew(kind, *BOTH)
        await looked_at(town)
        assert [row.state for row in await grants(town)] == ["held"], kind
    # The fault comes first: otherwise the spending could be seen and confirmed in time.
    await coin.spends("carol", 1)
    await looked_at(town)
    assert [row.state for row in await grants(town)] == ["held"]
    assert await town.writes(since) == []
    await town.heal()
    async with engine():
        await town.look()
        await taken(town)


async def test_one_lying_node_takes_no_role(town: Town, engine: Engine) -> None:
    coin = await a_coin(town)
    await coin.buys("carol", 100)
    await town.change(await town.rule("Holder"), expression=to_document(coin.leaf("100")))
    async with engine():
        await town.prove("carol")
        await given(town)
        await town.break_("zero", "rpc:base")
        await looked_at(town)
        assert await town.has("carol", "Holder")


async def test_a_rebase_is_seen_by_the_sweep(town: Town, engine: Engine) -> None:
    coin = await a_coin(town, 18, rebases=True)
    await coin.buys("carol", 100)
    await town.change(await town.rule("Holder"), expression=to_document(coin.leaf("100")))
    async with engine():
        await town.prove("carol")
        await given(town)
        await town.call("chains/base/rebase", contract=coin.contract, percent="50")
        await town.look()
        await taken(town)


async def test_coins_stand_in_trees_with_everything_else(town: Town, engine: Engine) -> None:
    coin, other = await a_coin(town), await a_coin(town, 18)
    token = await town.buys("carol")
    await coin.buys("carol", 10)
    basic = Requirement("basic", "base", town.contract)
    tree = AtLeast(2, (basic, AtLeast(1, (coin.leaf("10"), other.leaf("1")))))
    none = AtLeast(2, (basic, Not(coin.leaf(None, "10"))))
    await town.change(await town.rule("Holder"), expression=to_document(tree))
    await town.change(await town.rule("Whale"), expression=to_document(none))
    async with engine():
        await town.prove("carol")
        await given(town)
        assert not await town.has("carol", "Whale")
        await coin.buys("carol", 1)
        await town.look()
        await given(town, role="Whale")
        await town.sells(token)
        await town.look()
        await taken(town)
        await taken(town, role="Whale")


async def test_why_tells_amounts_as_people_write_them(town: Town, engine: Engine) -> None:
    coin = await a_coin(town)
    await coin.act("mint", 99_500_000, to=town.wallet("carol"))
    await town.change(await town.rule("Holder"), expression=to_document(coin.leaf("100", "250.5")))
    async with engine():
        await town.prove("carol")
        await looked_at(town)
    owner = Actor(user_id=0, discord_id=town.people["ada"]["id"], username="ada")
    async with transaction() as db:
        why = await explain.why(db, gateways(), owner, town.server_id, town.people["carol"]["id"])
    (one,) = why.roles[0].rules[0].requirements
    assert one.amounts == ("100 to 250.5", "99.5")
    assert (one.needed, one.most, one.held, one.outcome) == ("100", "250.5", "99.5", "no")
