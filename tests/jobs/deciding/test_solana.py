"""Roles for holdings on Solana: given, kept through every fault of the endpoint, and taken after a sale."""

import uuid
from dataclasses import replace
from typing import Any

import pytest

from gateways.chains.catalogue import CHAINS
from models import Rule, Wallet, transaction
from services.accounts.users import ensure
from services.core import queue
from services.rules.expression import Requirement, to_document
from services.rules.types.coin import CoinAmount
from tests.jobs.conftest import Engine
from tests.jobs.town import Town
from tests.jobs.watching import given, grants, looked_at, taken

SOLANA, ELSEWHERE = "solana", "1" * 31 + "9"


class Otters:
    """The town's own collection on Solana, and what people do with it."""

    def __init__(self, town: Town, contract: str) -> None:
        self.town, self.contract = town, contract

    def wallet(self, who: str) -> str:
        return self.town.people[who]["wallets"]["solana"]

    async def act(self, action: str, **body: Any) -> dict[str, Any]:
        return await self.town.call(f"chains/solana/{action}", contract=self.contract, **body)

    async def buys(self, who: str, **special: Any) -> str:
        return (await self.act("mint", to=self.wallet(who), **special))["token_id"]

    async def sells(self, token: str) -> None:
        await self.act("transfer", token_id=token, to=ELSEWHERE)

    async def proves(self, who: str) -> None:
        """Prove the person's Solana wallet."""
        person = self.town.people[who]
        async with transaction() as db:
            user_id = await ensure(db, person["id"], person["username"])
            db.add(Wallet(user_id=user_id, family=SOLANA, address=self.wallet(who), method="transaction"))
            await db.flush()
            await queue.mark_people(db, [person["id"]])

    async def rule(self, leaf: Requirement, role: str = "Holder") -> None:
        async with transaction() as db:
            db.add(
                Rule(
                    server_id=self.town.server_id,
                    name="A rule",
                    role_id=await self.town.role(role),
                    role_name=role,
                    verification_type=leaf.type,
                    contract_address=leaf.contract,
                    blockchain=SOLANA,
                    created_by="0",
                    min_tokens=leaf.min_tokens,
                    expression=to_document(leaf),
                )
            )
            await db.flush()
            await queue.mark_server(db, self.town.server_id, queue.CHANGED)


@pytest.fixture(autouse=True)
def soon_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block settles after a few slots, so that no test waits for thirteen seconds."""
    monkeypatch.setitem(CHAINS, SOLANA, replace(CHAINS[SOLANA], settled_after=3))


@pytest.fixture
async def otters(town: Town) -> Otters:
    made = await town.call("chains/solana/deploy", standard="Solana", name=town.name, slug=uuid.uuid4().hex)
    return Otters(town, made["contract"])


async def test_a_solana_nft_gives_the_role_and_its_sale_takes_it_at_the_next_sweep(
    town: Town, otters: Otters, engine: Engine
) -> None:
    token, other = await otters.buys("carol", compressed=True), await otters.buys("dave")
    await otters.rule(Requirement("basic", SOLANA, otters.contract, 1))
    async with engine():
        await otters.proves("carol")
        await otters.proves("dave")
        await given(town, "carol")
        await given(town, "dave")
        await otters.act("mark", token_id=other, frozen=True, delegate=ELSEWHERE)
        await otters.sells(token)
        await looked_at(town)
        await taken(town, "carol")
        assert await town.has("dave", "Holder")


async def test_rules_of_every_type_are_answered_on_solana(town: Town, otters: Otters, engine: Engine) -> None:
    token, plain = await otters.buys("carol", interface="MplCoreAsset"), await otters.buys("dave")
    await otters.act("traits", token_id=token, traits={"Level": 7, "Hat": "Crown"})
    await otters.act("traits", token_id=plain, traits={"Level": 2})
    await otters.rule(Requirement("trait", SOLANA, otters.contract, 1, (("level", ">=7"),)), "Holder")
    await otters.rule(Requirement("token_id", SOLANA, otters.contract, token_ids=(token,)), "Collector")
    await otters.rule(Requirement("any_nft", SOLANA, "any"), "Whale")
    async with engine():
        await otters.proves("carol")
        await otters.proves("dave")
        for role in ("Holder", "Collector", "Whale"):
            await given(town, "carol", role)
        await given(town, "dave", "Whale")
        assert not await town.has("dave", "Holder")
        await otters.sells(token)
        await otters.act("burn", token_id=plain)
        await looked_at(town)
        for role in ("Holder", "Collector", "Whale"):
            await taken(town, "carol", role)
        await taken(town, "dave", "Whale")


async def test_no_fault_of_the_endpoint_takes_a_role(town: Town, otters: Otters, engine: Engine) -> None:
    token = await otters.buys("carol")
    await otters.rule(Requirement("basic", SOLANA, otters.contract, 1))
    async with engine():
        await otters.proves("carol")
        await given(town)
    before = await town.mark()
    for kind in ("empty", "zero", "500", "malformed"):
        mark = await town.mark()
        await town.break_anew(kind, SOLANA)
        await looked_at(town)
        assert await town.requests(mark, SOLANA), kind
        assert [row.state for row in await grants(town)] == ["held"], kind
    assert await town.writes(before) == []
    await town.heal()
    await otters.sells(token)
    async with engine():
        await looked_at(town)
        await taken(town)


async def a_coin(town: Town, standard: str) -> Otters:
    """Make the town's own coin on Solana, of which carol has 100 and dave 5."""
    slug = uuid.uuid4().hex
    made = await town.call("chains/solana/deploy", standard=standard, name=town.name, slug=slug, decimals="6")
    coin = Otters(town, made["contract"])
    for who, whole in (("carol", 100), ("dave", 5)):
        await coin.act("mint", amount=str(whole * 10**6), to=coin.wallet(who))
    return coin


def coins(contract: str, least: str, decimals: int = 6) -> Requirement:
    return Requirement("token", SOLANA, contract, details=CoinAmount(least, None, decimals))


@pytest.mark.parametrize(("standard", "faults"), [("SPL", ("down", "empty")), ("SPL2022", ("zero", "malformed"))])
async def test_a_role_for_a_coin_on_solana_stays_through_faults_and_goes_with_the_coin(
    town: Town, engine: Engine, standard: str, faults: tuple[str, ...]
) -> None:
    coin = await a_coin(town, standard)
    await coin.rule(coins(coin.contract, "100"))
    async with engine():
        await coin.proves("carol")
        await coin.proves("dave")
        await given(town)
    await coin.act("transfer", amount="1", to=coin.wallet("dave"), **{"from": coin.wallet("carol")})
    for kind in faults:
        await town.break_anew(kind, SOLANA)
        await looked_at(town)
        (row,) = await grants(town)
        assert (row.discord_id, row.state) == (town.people["carol"]["id"], "held"), kind
    await town.heal()
    async with engine():
        await looked_at(town)
        await taken(town)


async def test_the_own_coin_of_solana_counts_in_whole_ones(town: Town, engine: Engine) -> None:
    coin = await a_coin(town, "SPL")
    for who in ("carol", "dave"):
        await town.call("chains/solana/send", to=coin.wallet(who), value_wei=str(10**10), **{"from": ELSEWHERE})
    await coin.rule(coins("native", "9.9", 9))
    await coin.rule(coins("native", "10.1", 9), "Collector")
    async with engine():
        await coin.proves("carol")
        await given(town)
        sent = {"from": coin.wallet("carol"), "to": coin.wallet("dave"), "value_wei": str(5 * 10**8)}
        await town.call("chains/solana/send", **sent)
        await coin.proves("dave")
        await given(town, "dave", "Collector")
        await looked_at(town)
        await taken(town)
