"""Every kind of rule on every kind of collection: yes, no and unknown, both when read and when shown later."""

import itertools
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from gateways import gateways
from models import now, transaction
from services.collections import standards
from services.core.answer import Answer
from services.core.queue import Claim
from services.engine import cases, ledger, read_and_confirm
from services.holdings import last_known
from services.holdings.evaluate import Reading
from services.rules.expression import Requirement, to_document
from services.rules.rule_terms import RuleTerms
from tests.jobs.conftest import Engine
from tests.jobs.town import STRANGER, Town, until
from tests.jobs.watching import given

YES, NO, UNKNOWN = Answer.YES, Answer.NO, Answer.UNKNOWN
NODES = ("rpc:{chain}", "rpc2:{chain}")
STANDARDS = ("ERC721", "ERC721Enumerable", "ERC1155")
# Base supports state override and Multicall3; few other tests use Abstract, which lacks Multicall3 at the usual
# address.
CHAINS = ("base", "abstract")
OTHERS = ("ethereum", "polygon", "arbitrum", "optimism", "apechain")

HOLDER, NOBODY = (f"0x{uuid.uuid4().hex}{name}" for name in ("ca501001", "da7e0000"))


@pytest.fixture(scope="module")
def contracts(sandbox_url: str) -> dict[tuple[str, str], str]:
    """Collections of every standard; HOLDER has tokens 1 and 7 (for ERC-1155 two of 7) and NOBODY has none."""
    with ThreadPoolExecutor() as together:
        built = together.map(lambda chain: _collections(sandbox_url, chain), (*CHAINS, *OTHERS))
        return {place: contract for made in built for place, contract in made.items()}


def _collections(sandbox_url: str, chain: str) -> dict[tuple[str, str], str]:
    found: dict[tuple[str, str], str] = {}
    with httpx.Client(base_url=sandbox_url, timeout=60) as control:

        def call(acts: list[dict[str, Any]]) -> list[dict[str, Any]]:
            answer = control.post(f"/control/chains/{chain}/several", json={"acts": acts})
            assert answer.status_code == 200, f"{chain}: {answer.status_code} {answer.text}"
            return answer.json()["done"]

        deploy = {"action": "deploy", "name": "Kinds"}
        made = call([{**deploy, "standard": standard, "slug": uuid.uuid4().hex} for standard in STANDARDS])
        acts: list[dict[str, Any]] = []
        for standard, one in zip(STANDARDS, made, strict=True):
            contract = found[chain, standard] = one["contract"]
            for token, owner, amount in ((1, HOLDER, 1), (7, HOLDER, 2), (8, STRANGER, 1)):
                many = {"amount": str(amount)} if standard == "ERC1155" else {}
                acts.append({"action": "mint", "contract": contract, "token_id": str(token), "to": owner, **many})
            for token, traits in (("7", {"Fur": "Gold", "Level": 12}), ("1", {"Fur": "Red"})):
                acts.append({"action": "traits", "contract": contract, "token_id": token, "traits": traits})
        call(acts)
    return found


@dataclass
class World:
    """A town where carol has HOLDER's wallet and dave has NOBODY's."""

    town: Town
    contracts: dict[tuple[str, str], str]

    def leaf(self, kind: str, chain: str, standard: str, **more: Any) -> Requirement:
        contract = "any" if kind == "any_nft" else self.contracts[chain, standard]
        return Requirement(kind, chain, contract, **more)

    async def read_all(self, leaves: Sequence[Requirement]) -> list[dict[str, Reading]]:
        """Return one reconcile's reading of carol and dave, after checking that the stored answers are the same."""
        claims = {who: Claim(self.town.server_id, self.town.people[who]["id"], 0, 0, 0) for who in ("carol", "dave")}
        terms = [RuleTerms(number, "role", leaf, "active") for number, leaf in enumerate(leaves)]
        async with transaction() as db:
            batch = await cases.load(db, list(claims.values()), {self.town.server_id: terms})
            wanted = await read_and_confirm.questions(db, batch)
        done = await read_and_confirm.decide_cases(gateways(), batch, wanted, now())
        async with transaction() as db:
            await ledger.remember(db, done)
            wallets = {item.case.wallets for item in done.outcomes}
            memory = await last_known.load(db, leaves, [address for mine in wallets for _, address in mine])
        found: list[dict[str, Reading]] = []
        for number, leaf in enumerate(leaves):
            said = {who: item.readings[number][0] for who, item in zip(claims, done.outcomes, strict=True)}
            found.append(said)
            for one, item in zip(said.values(), done.outcomes, strict=True):
                told = last_known.recall(leaf, item.case.wallets, memory)
                if one.answer is not UNKNOWN:
                    assert (told.answer, told.held) == (one.answer, one.held), leaf
        return found

    async def read(self, leaf: Requirement) -> dict[str, Reading]:
        return (await self.read_all([leaf]))[0]

    async def answers(self, leaf: Requirement) -> tuple[Answer, Answer]:
        found = await self.read(leaf)
        return found["carol"].answer, found["dave"].answer


@pytest.fixture
async def world(town: Town, contracts: dict[tuple[str, str], str]) -> World:
    for who, address in (("carol", HOLDER), ("dave", NOBODY)):
        town.people[who]["wallets"]["evm"] = address
        await town.prove(who)
    return World(town, contracts)


LEAVES: dict[str, tuple[str, dict[str, Any], Answer]] = {
    "one of any": ("basic", {}, YES),
    "two of any": ("basic", {"min_tokens": 2}, YES),
    "many of any": ("basic", {"min_tokens": 9}, NO),
    "a named one": ("token_id", {"token_ids": ("7",)}, YES),
    "one of a million": ("token_id", {"token_ids": ("2-1000000", "9000000")}, YES),
    "somebody else's": ("token_id", {"token_ids": ("8",)}, NO),
    "one that never was": ("token_id", {"token_ids": ("555",)}, NO),
    "a million others": ("token_id", {"token_ids": ("9-1000000",)}, NO),
    "a trait": ("trait", {"traits": (("Fur", "gold "),)}, YES),
    "a number": ("trait", {"traits": (("level", ">=12"),)}, YES),
    "a trait of none": ("trait", {"traits": (("Fur", "Blue"),)}, NO),
    "two of a trait": ("trait", {"traits": (("Fur", "Red"),), "min_tokens": 2}, NO),
}


ELSEWHERE = ("two of any", "many of any", "a named one", "somebody else's", "a trait", "a trait of none")
"""What is asked on the other chains, which differ only in their node's facts."""
Row = tuple[str, str, str]
"""Chain, standard and the name of a leaf. An empty standard means any contract."""
TABLE: tuple[Row, ...] = (
    *itertools.product(CHAINS, STANDARDS, LEAVES),
    *itertools.product(OTHERS, STANDARDS, ELSEWHERE),
    *((chain, "", "anything") for chain in (*CHAINS, *OTHERS)),
)


def asked(world: World, row: Row) -> tuple[Requirement, Answer]:
    """Return a row's leaf and the answer expected for the holder; for the person without tokens it is always no."""
    chain, standard, name = row
    kind, more, expected = LEAVES.get(name, ("any_nft", {}, YES))
    return world.leaf(kind, chain, standard, **more), expected


async def test_every_type_on_every_standard_and_chain_says_yes_and_no(world: World) -> None:
    rows = [asked(world, row) for row in TABLE]
    wrong: list[str] = []
    for row, (leaf, expected), found in zip(TABLE, rows, await world.read_all([leaf for leaf, _ in rows]), strict=True):
        if (found["carol"].answer, found["dave"].answer) != (expected, NO):
            wrong.append(f"{row}: {leaf}, {found['carol']}, {found['dave']}")
    assert wrong == []


async def test_every_type_on_every_standard_and_chain_says_unknown_while_its_nodes_are_down(world: World) -> None:
    await world.town.break_("down", *(node.format(chain=chain) for chain in (*CHAINS, *OTHERS) for node in NODES))
    leaves = [asked(world, row)[0] for row in TABLE]
    answers = {one.answer for found in await world.read_all(leaves) for one in found.values()}
    assert answers == {UNKNOWN}


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


async def test_what_another_servers_rules_name_is_not_asked_where_anything_counts(world: World) -> None:
    strangers = f"0x{uuid.uuid4().hex}{'0' * 8}"
    own, counted = world.contracts["base", "ERC721"], world.leaf("any_nft", "base", "")
    async with transaction() as db:
        # As for a rule of another server, or a preview.
        await standards.remember(db, {("base", strangers): "ERC721", ("base", own): "ERC721"})
    for leaves, asked in (([counted], set()), ([counted, world.leaf("trait", "base", "ERC721")], {own})):
        terms = [RuleTerms(number, "role", leaf, "active") for number, leaf in enumerate(leaves)]
        claim = Claim(world.town.server_id, world.town.people["carol"]["id"], 0, 0, 0)
        async with transaction() as db:
            (case,) = await cases.load(db, [claim], {world.town.server_id: terms})
        assert {*case.wants["base"].balances, *case.wants["base"].beside} == asked


@pytest.mark.parametrize("kind", ["down", "429", "empty", "zero", "malformed", "stale"])
async def test_no_fault_of_the_nodes_makes_a_no(world: World, kind: str) -> None:
    leaves = [
        world.leaf(kind_of, "abstract", standard, **more)
        for standard in STANDARDS
        for kind_of, more, expected in LEAVES.values()
        if expected is YES
    ]
    await world.town.break_(kind, *(node.format(chain="abstract") for node in NODES))
    for leaf, found in zip(leaves, await world.read_all(leaves), strict=True):
        assert found["carol"].answer is not NO, leaf


async def test_traits_that_nobody_tells_are_unknown_and_tokens_without_any_are_not(world: World) -> None:
    await world.town.break_("down", "opensea", "metadata")
    gold = world.leaf("trait", "base", "ERC721", traits=(("Fur", "Gold"),))
    found = await world.read(gold)
    assert (found["carol"].answer, found["dave"].answer) == (UNKNOWN, NO)
    assert "token" in (found["carol"].reason or "")
    await world.town.heal()
    assert await world.answers(gold) == (YES, NO)


async def test_a_purchase_moves_a_member_to_the_next_tier_and_never_leaves_them_without_one(
    town: Town, engine: Engine
) -> None:
    tiers = {"Holder": (1, 1), "Collector": (2, None)}
    for role, (least, most) in tiers.items():
        leaf = Requirement("basic", "base", town.contract, least, max_tokens=most)
        await town.change(await town.rule(role), expression=to_document(leaf))
    async with engine():
        await town.prove("carol")
        await town.buys("carol")
        await town.look()
        await given(town)
        before = await town.mark()
        token = await town.buys("carol")
        await town.look()

        async def moved() -> bool:
            return len(await town.writes(before)) == 2

        await until(moved)
        assert (await town.has("carol", "Holder"), await town.has("carol", "Collector")) == (False, True)
        assert await town.writes(before) == ["PUT", "DELETE"]
        before = await town.mark()
        await town.sells(token)
        await town.look()
        await until(moved)
        assert await town.writes(before) == ["PUT", "DELETE"]
        assert (await town.has("carol", "Holder"), await town.has("carol", "Collector")) == (True, False)


async def test_roles_of_every_kind_come_with_the_tokens_and_go_with_them_after_a_second_look(
    town: Town, engine: Engine
) -> None:
    made = await town.call("chains/base/deploy", standard="ERC1155", name="Many", slug=uuid.uuid4().hex)
    token = await town.buys("carol")
    await town.call("chains/base/traits", contract=town.contract, token_id=token, traits={"Fur": "Gold"})
    await town.call("chains/base/mint", contract=made["contract"], token_id="3", amount="2", to=town.wallet("carol"))
    leaves = {
        "Holder": Requirement("trait", "base", town.contract, traits=(("fur", "gold"),)),
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


async def test_a_collection_that_counts_its_tokens_in_another_way_by_now_is_read_that_way(
    town: Town, engine: Engine
) -> None:
    """A proxy can lead to a contract of another standard than when the rule was made."""
    made = await town.call("chains/base/deploy", standard="ERC1155", name="Upgraded", slug=uuid.uuid4().hex)
    async with transaction() as db:
        await standards.remember(db, {("base", made["contract"]): "ERC721"})
    await town.call("chains/base/mint", contract=made["contract"], token_id="3", amount="2", to=town.wallet("carol"))
    wanted = Requirement("basic", "base", made["contract"], 2)
    await town.change(await town.rule("Holder"), expression=to_document(wanted))
    async with engine():
        await town.prove("carol")
        await given(town)
