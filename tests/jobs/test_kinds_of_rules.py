"""Every kind of rule on every kind of collection: yes, no and unknown, as a look finds them and as it is told later."""

import uuid
from dataclasses import dataclass, field
from typing import Any

import pytest

from gateways import gateways
from models import now, transaction
from services import cases, decisions, findings, tallies
from services.due import Claim
from services.expressions import Answer, Requirement, to_document
from services.policy import RuleTerms
from services.readings import Reading
from tests.jobs.conftest import Engine
from tests.jobs.town import STRANGER, Town, until

YES, NO, UNKNOWN = Answer.YES, Answer.NO, Answer.UNKNOWN
NODES = ("rpc:{chain}", "rpc2:{chain}")
STANDARDS = ("ERC721", "ERC721Enumerable", "ERC1155")
# Base knows state override and Multicall3; few other tests use Abstract, which has no Multicall3 where others do.
CHAINS = ("base", "abstract")


@dataclass
class World:
    """Collections of every standard, in which carol has tokens 1 and 7 (of ERC-1155 two of 7) and dave has none."""

    town: Town
    contracts: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])

    async def build(self) -> None:
        for chain in CHAINS:
            for standard in STANDARDS:
                made = await self.town.call(
                    f"chains/{chain}/deploy", standard=standard, name="Kinds", slug=uuid.uuid4().hex
                )
                contract = self.contracts[chain, standard] = made["contract"]
                for token, owner, amount in ((1, "carol", 1), (7, "carol", 2), (8, None, 1)):
                    await self.town.call(
                        f"chains/{chain}/mint", contract=contract, token_id=str(token),
                        to=self.town.wallet(owner) if owner else STRANGER,
                        **({"amount": str(amount)} if standard == "ERC1155" else {}),
                    )  # fmt: skip
                await self.town.call(
                    f"chains/{chain}/traits", contract=contract, token_id="7", traits={"Fur": "Gold", "Level": 12}
                )
                await self.town.call(f"chains/{chain}/traits", contract=contract, token_id="1", traits={"Fur": "Red"})

    def leaf(self, kind: str, chain: str, standard: str, **more: Any) -> Requirement:
        contract = "any" if kind == "any_nft" else self.contracts[chain, standard]
        return Requirement(kind, chain, contract, **more)

    async def read(self, leaf: Requirement) -> dict[str, Reading]:
        """What a look says of carol and dave; and what is remembered afterwards says the same."""
        claims = {who: Claim(self.town.server_id, self.town.people[who]["id"], 0, 0, 0) for who in ("carol", "dave")}
        terms = RuleTerms(1, "role", leaf, "active")
        async with transaction() as db:
            batch = await cases.load(db, list(claims.values()), supposing=[terms])
            wanted = await decisions.questions(db, batch)
        done = await decisions.look(gateways(), batch, wanted, now())
        async with transaction() as db:
            await findings.remember(db, done)
        found: dict[str, Reading] = {}
        for who, item in zip(claims, done.looked, strict=True):
            found[who] = item.readings[1][0]
            async with transaction() as db:
                memory = await tallies.load(db, [leaf], [address for _, address in item.case.wallets])
            told = tallies.recall(leaf, item.case.wallets, memory)
            if found[who].answer is not UNKNOWN:
                assert (told.answer, told.held) == (found[who].answer, found[who].held), leaf
        return found

    async def answers(self, leaf: Requirement) -> tuple[Answer, Answer]:
        found = await self.read(leaf)
        return found["carol"].answer, found["dave"].answer


@pytest.fixture
async def world(town: Town) -> World:
    made = World(town)
    await made.build()
    await town.prove("carol")
    await town.prove("dave")
    return made


LEAVES: dict[str, tuple[str, dict[str, Any], Answer]] = {
    "one of any": ("basic", {}, YES),
    "two of any": ("basic", {"min_tokens": 2}, YES),
    "many of any": ("basic", {"min_tokens": 9}, NO),
    "a named one": ("token_id", {"token_ids": ("7",)}, YES),
    "one of a million": ("token_id", {"token_ids": ("2-1000000", "9000000")}, YES),
    "somebody else's": ("token_id", {"token_ids": ("8",)}, NO),
    "one that never was": ("token_id", {"token_ids": ("555",)}, NO),
    "a million others": ("token_id", {"token_ids": ("9-1000000",)}, NO),
    "a trait": ("trait", {"trait": ("Fur", "gold ")}, YES),
    "a number": ("trait", {"trait": ("level", ">=12")}, YES),
    "a trait of none": ("trait", {"trait": ("Fur", "Blue")}, NO),
    "two of a trait": ("trait", {"trait": ("Fur", "Red"), "min_tokens": 2}, NO),
}


async def test_every_type_on_every_standard_and_chain(world: World) -> None:
    wrong: list[str] = []
    for chain in CHAINS:
        for standard in STANDARDS:
            for name, (kind, more, expected) in LEAVES.items():
                leaf = world.leaf(kind, chain, standard, **more)
                found = await world.answers(leaf)
                if found != (expected, NO):
                    reason = (await world.read(leaf))["carol"].reason
                    wrong.append(f"{name} on {standard} on {chain}: {found}, {reason}")
    assert wrong == []


async def test_the_evidence_is_told_with_the_answer(world: World) -> None:
    reading = (await world.read(world.leaf("basic", "base", "ERC1155", min_tokens=3)))["carol"]
    assert (reading.needed, reading.held, reading.source) == (3, 3, "Base node 1")
    assert reading.block
    assert reading.observed_at
    assert [(part.address, part.amount) for part in reading.parts] == [(world.town.wallet("carol"), 3)]
    assert "0x" not in str(reading.document()["source"])


async def test_anything_counts_wherever_it_is(world: World) -> None:
    anything = world.leaf("any_nft", "abstract", "ERC721")
    assert await world.answers(anything) == (YES, NO)
    await world.town.break_("down", "opensea")
    assert await world.answers(anything) == (YES, UNKNOWN), "what was found before is asked of the chain"
    await world.town.heal()
    await world.town.break_("empty", "opensea")
    assert await world.answers(anything) == (YES, NO)


@pytest.mark.parametrize("kind", ["down", "429", "500", "empty", "zero", "malformed", "stale"])
async def test_no_fault_of_the_nodes_makes_a_no(world: World, kind: str) -> None:
    leaves = [
        world.leaf(kind_of, "abstract", standard, **more)
        for standard in STANDARDS
        for kind_of, more, expected in LEAVES.values()
        if expected is YES
    ]
    await world.town.break_(kind, *(node.format(chain="abstract") for node in NODES))
    for leaf in leaves[:: 4 if kind in {"zero", "empty", "stale"} else 7]:
        carol, _ = await world.answers(leaf)
        assert carol is not NO, leaf


async def test_traits_that_nobody_tells_are_unknown_and_tokens_without_any_are_not(world: World) -> None:
    await world.town.break_("down", "opensea", "metadata")
    gold = world.leaf("trait", "base", "ERC721", trait=("Fur", "Gold"))
    found = await world.read(gold)
    assert (found["carol"].answer, found["dave"].answer) == (UNKNOWN, NO)
    assert "token" in (found["carol"].reason or "")
    await world.town.heal()
    assert await world.answers(gold) == (YES, NO)


async def test_roles_of_every_kind_come_with_the_tokens_and_go_with_them_after_a_second_look(
    town: Town, engine: Engine
) -> None:
    made = await town.call("chains/base/deploy", standard="ERC1155", name="Many", slug=uuid.uuid4().hex)
    token = await town.buys("carol")
    await town.call("chains/base/traits", contract=town.contract, token_id=token, traits={"Fur": "Gold"})
    await town.call("chains/base/mint", contract=made["contract"], token_id="3", amount="2", to=town.wallet("carol"))
    leaves = {
        "Holder": Requirement("trait", "base", town.contract, trait=("fur", "gold")),
        "Collector": Requirement("token_id", "base", town.contract, token_ids=("1-1000000",)),
        "Whale": Requirement("basic", "base", made["contract"], 2),
    }
    for role, wanted in leaves.items():
        await town.change(await town.rule(role), expression=to_document(wanted))
    async with engine():
        await town.prove("carol")
        for role in leaves:
            await until(lambda role=role: town.has("carol", role))
        await town.sells(token)
        await town.call(
            "chains/base/transfer", contract=made["contract"], token_id="3", amount="1",
            **{"from": town.wallet("carol"), "to": STRANGER},
        )  # fmt: skip
        await town.look()

        async def nothing_left() -> bool:
            return not any([await town.has("carol", role) for role in leaves])

        await until(nothing_left)
