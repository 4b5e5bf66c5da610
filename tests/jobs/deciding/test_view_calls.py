"""Rules on view functions, end to end: roles follow what contracts answer, and no fault takes one."""

import uuid
from typing import Any

import pytest

from gateways import gateways
from models import now, transaction
from sandbox.contracts.staking import KINDS
from services.core.actors import Actor
from services.core.answer import Answer
from services.core.queue import Claim
from services.engine import cases, ledger, read_and_confirm
from services.holdings import last_known
from services.holdings.evaluate import Reading
from services.rules.expression import Requirement, to_document
from services.rules.rule_terms import RuleTerms
from services.rules.types.view_call import ViewCall
from services.servers import explain
from tests.jobs.conftest import Engine
from tests.jobs.town import Town, until
from tests.jobs.watching import given, grants, kinds, looked_at

YES, NO, UNKNOWN = Answer.YES, Answer.NO, Answer.UNKNOWN
BOTH = ("rpc:{chain}", "rpc2:{chain}")
TELLING = ("number", "list", "struct", "constant")
HOSTILE = ("revert", "huge")
# Polygon's nodes lack state override, and take three calls a batch.
CHAINS = ("base", "polygon")


class Den:
    """Staking contracts of every kind on one chain, where the town's people stake."""

    def __init__(self, town: Town, chain: str) -> None:
        self.town, self.chain = town, chain
        self.contracts: dict[str, str] = {}

    async def build(self, *kinds: str) -> None:
        slugs = [uuid.uuid4().hex for _ in kinds]
        made = await self.town.several(
            self.chain,
            *({"action": "deploy", "standard": f"Staking:{kind}", "name": kind, "slug": slug}
              for kind, slug in zip(kinds, slugs, strict=True)),
        )  # fmt: skip
        self.contracts |= {kind: one["contract"] for kind, one in zip(kinds, made, strict=True)}

    def staking(self, kind: str, token: int, address: str) -> dict[str, str]:
        return {"action": "stake", "contract": self.contracts[kind], "token_id": str(token), "from": address}

    async def unstake(self, kind: str, token: int, address: str) -> None:
        body: dict[str, Any] = {"contract": self.contracts[kind], "token_id": str(token), "from": address}
        await self.town.call(f"chains/{self.chain}/unstake", **body)

    def leaf(self, kind: str, compare: str = ">=", value: str = "1") -> Requirement:
        """Return the requirement that a rule has for a contract of this kind."""
        how = KINDS[kind]
        details = ViewCall(how.view, how.args, how.path, compare, value)
        contract = self.contracts[kind]
        return Requirement("call", self.chain, contract, details=details.checked(self.chain, contract))

    async def read(self, *leaves: Requirement) -> list[dict[str, Reading]]:
        """Return one reconcile's reading of carol and dave, after checking that the stored answers are the same."""
        town = self.town
        claims = {who: Claim(town.server_id, town.people[who]["id"], 0, 0, 0) for who in ("carol", "dave")}
        terms = [RuleTerms(number, "role", leaf, "active") for number, leaf in enumerate(leaves)]
        async with transaction() as db:
            batch = await cases.load(db, list(claims.values()), {town.server_id: terms})
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


async def den(town: Town, chain: str, *kinds: str) -> Den:
    """Return a den with these kinds, in which carol has staked two tokens and dave none."""
    made = Den(town, chain)
    await made.build(*kinds)
    for who in ("carol", "dave"):
        await town.prove(who)
    told = set(kinds) & set(TELLING)
    await town.several(chain, *(made.staking(kind, token, town.wallet("carol")) for kind in told for token in (1, 2)))
    return made


@pytest.mark.parametrize("chain", CHAINS)
async def test_every_kind_of_staking_says_yes_and_no_and_hostile_ones_say_nothing(town: Town, chain: str) -> None:
    here = await den(town, chain, *KINDS)
    leaves = [here.leaf(kind) for kind in TELLING]
    leaves += [here.leaf(kind, ">=", "3") for kind in TELLING]
    leaves += [here.leaf(kind, "<=", "1") for kind in TELLING]
    leaves += [here.leaf(kind, "=", "2") for kind in TELLING]
    leaves += [here.leaf(kind) for kind in HOSTILE]
    answers = [(found["carol"].answer, found["dave"].answer) for found in await here.read(*leaves)]
    expected = [(YES, NO)] * 4 + [(NO, NO)] * 4 + [(NO, YES)] * 4 + [(YES, NO)] * 4 + [(UNKNOWN, UNKNOWN)] * 2
    assert answers == expected


async def test_the_evidence_says_what_is_needed_and_held_and_why_nothing_is_known(town: Town) -> None:
    here = await den(town, "base", "number", "revert")
    number, revert = await here.read(here.leaf("number", ">=", "2"), here.leaf("revert"))
    reading = number["carol"]
    assert (reading.needed, reading.held, reading.source) == (2, 2, "Base node 1")
    assert reading.block
    assert [(part.address, part.amount) for part in reading.parts] == [(town.wallet("carol"), 2)]
    assert (revert["carol"].reason, revert["carol"].held) == ("the contract reverted", 0)
    assert reading.document()["type"] == "call"


@pytest.mark.parametrize("chain", CHAINS)
async def test_no_fault_of_the_nodes_makes_a_no(town: Town, chain: str) -> None:
    here = await den(town, chain, *TELLING)
    for kind in ("down", "429", "empty", "zero", "malformed", "stale"):
        await town.break_anew(kind, *(node.format(chain=chain) for node in BOTH))
        for found in await here.read(*(here.leaf(one) for one in TELLING)):
            assert found["carol"].answer is not NO, kind


async def test_no_fault_takes_a_role_and_what_is_unstaked_does_when_it_is_over(town: Town, engine: Engine) -> None:
    nodes = [node.format(chain="base") for node in BOTH]
    here = await den(town, "base", "number")
    await town.change(await town.rule("Holder"), expression=to_document(here.leaf("number", ">=", "2")))
    async with engine():
        await given(town)
    before = await town.mark()
    for kind in ("down", "empty", "zero", "malformed", "stale"):
        mark = await town.mark()
        await town.break_anew(kind, *nodes)
        await looked_at(town)
        assert [one for node in nodes for one in await town.requests(mark, node)], kind
        assert [row.state for row in await grants(town)] == ["held"], kind
    # Of these faults only a stale node still says what was staked before; it has to begin earlier.
    await here.unstake("number", 1, town.wallet("carol"))
    await looked_at(town)
    assert [row.state for row in await grants(town)] == ["held"]
    assert await town.writes(before) == []
    await town.heal()
    async with engine():
        await town.look()

        async def taken() -> bool:
            return "role.taken" in await kinds(town)

        await until(taken)
        assert not await town.has("carol", "Holder")
    assert [one for one in await kinds(town) if one.startswith("role.")] == ["role.given", "role.taken"]


async def test_a_contract_that_begins_to_revert_takes_nothing(town: Town, engine: Engine) -> None:
    """The rule is edited to name a contract that reverts: a failed call is never a no."""
    here = await den(town, "base", "number", "revert", "huge")
    rule = await town.rule("Holder")
    await town.change(rule, expression=to_document(here.leaf("number")))
    async with engine():
        await given(town)
        before = await town.mark()
        for hostile in HOSTILE:
            await town.change(rule, expression=to_document(here.leaf(hostile)))
            since = await town.mark()

            async def looked(since: int = since) -> bool:
                return bool(await town.requests(since, "rpc:base"))

            await until(looked)
        assert await town.writes(before) == []
        assert await town.has("carol", "Holder")


async def test_a_value_larger_than_any_integer_of_a_database_is_kept_and_told(town: Town, engine: Engine) -> None:
    here = await den(town, "base", "number")
    huge = str(2**256 - 1)
    await town.change(await town.rule("Holder"), expression=to_document(here.leaf("number", "<=", huge)))
    await town.change(await town.rule("Whale"), expression=to_document(here.leaf("number", ">=", huge)))
    async with engine():
        await given(town)
    assert not await town.has("carol", "Whale")
    carol = Actor(1, town.people["carol"]["id"], "carol")
    async with transaction() as db:
        told = await explain.own(db, carol, town.server_id)
    amounts = {role.role_name: role.rules[0].requirements[0].amounts for role in told.roles}
    assert amounts == {"Holder": (f"0 to {int(huge):,}", "2"), "Whale": (f"{int(huge):,}", "2")}


async def test_a_hostile_contract_spoils_nothing_for_the_others(town: Town) -> None:
    here = await den(town, "base", *KINDS)
    leaves = [here.leaf("huge"), here.leaf("revert"), here.leaf("number"), Requirement("basic", "base", town.contract)]
    await town.buys("carol")
    found = await here.read(*leaves)
    assert [one["carol"].answer for one in found] == [UNKNOWN, UNKNOWN, YES, YES]


async def test_one_question_is_asked_once_however_many_rules_compare_its_answer(town: Town) -> None:
    here = await den(town, "base", "number")
    before = await town.mark()
    await here.read(*(here.leaf("number", ">=", str(least)) for least in range(1, 9)))
    calls = [one for one in await town.requests(before, "rpc:base") if one["rpc_method"] == "eth_call"]
    assert len(calls) == 1
