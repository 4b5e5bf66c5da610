"""Random histories of answers from nodes and marketplaces: no holder loses a role, and no former holder keeps it."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from gateways.chains.balance_sheet import BalanceSheet, Cells, packed
from gateways.chains.catalogue import CHAINS
from gateways.chains.metadata_traits import Trait
from gateways.chains.token_sheet import TokenSheet
from gateways.chains.view_sheet import ViewSheet
from services.collections.trait_match import TokenTraits
from services.core.answer import Answer
from services.core.queue.claims import pause_after
from services.engine.decide import Action, Decision, GrantFacts, decide, keeps_differently
from services.holdings import confirmation
from services.holdings.confirmation import Confirmation, Means
from services.holdings.evaluate import Answers, Reading, in_part, read
from services.rules.expression import Requirement
from services.rules.rule_terms import RuleTerms
from services.rules.types.coin import CoinAmount
from services.rules.types.view_call import ViewCall

HISTORIES = int(os.environ.get("HISTORIES", "400"))
"""Number of random histories for each leaf; `make fuzz` runs many more."""
START = datetime(2026, 1, 2, tzinfo=UTC)
CHAIN = CHAINS["base"]
DEEP = CHAIN.settled_after
WALLET = "0x" + "a1" * 20
COUNTED = Requirement("basic", CHAIN.key, "0x" + "c0" * 20)
DOLLARS = replace(COUNTED, type="token", details=CoinAmount("100", None, 6))
NOT_TOO_MANY = replace(COUNTED, type="token", details=CoinAmount(None, "250.5", 6))
AMOUNTS = {DOLLARS: (10**12 + 1, 20 * 10**6), NOT_TOO_MANY: (0, 10**30)}
"""For each coin, an amount with which carol is a holder, and one with which she is not."""
SEVENTH = replace(COUNTED, type="token_id", token_ids=("7",))
AT_MOST_NONE = replace(COUNTED, min_tokens=0, max_tokens=0)
"""A condition that carol fulfils while she does not have the token."""
GOLD = replace(COUNTED, type="trait", traits=(("Fur", "Gold"),))
STAKED = ViewCall("staked(address) view returns (uint256)")
CALLED = replace(COUNTED, type="call", details=STAKED)
QUESTION = STAKED.question(COUNTED.contract)
FUR, OTHER = (Trait("Fur", "Gold"),), (Trait("Status", "Refreshing"),)
SOURCES = ("OpenSea", "token metadata")
SOON = timedelta(minutes=30)
"""How long after the first look with honest answers a former holder must have lost the role.

That reading happens at the next sweep at the latest, so this limit ends long before the sweep after it.
"""
HONEST, DOWN, STALE, LYING, PARTIAL = "honest", "down", "stale", "lying", "partial"


@dataclass
class World:
    """Whether carol has token 7 at each block of a chain, and how its nodes and the sources of traits behave now."""

    random: Random
    leaf: Requirement
    nodes: int
    sources: int
    now: datetime = START
    held: list[bool] = field(default_factory=lambda: [True] * 400)
    """Whether carol has the token, by block."""
    manners: dict[str, str] = field(default_factory=dict[str, str])
    liar: int = -1
    wrong: str = ""
    wait: float | None = None
    """Seconds after which the next look can succeed, according to the last one."""

    def __post_init__(self) -> None:
        if self.nodes > 1 and self.random.random() < 0.7:
            self.liar = self.random.randrange(self.nodes)
        if self.random.random() < 0.7:
            self.wrong = self.random.choice(SOURCES[-self.sources :])

    @property
    def head(self) -> int:
        return len(self.held) - 1

    def goes_on(self, by: timedelta, *, holds: bool) -> None:
        self.now += by
        self.held += [holds] * int(by.total_seconds() / CHAIN.block_seconds)

    def upset(self) -> None:
        """Give every node and source a random behaviour; at most one node and one source of traits answers falsely."""
        for node in range(self.nodes):
            kinds = (HONEST, HONEST, DOWN, STALE, PARTIAL, *([LYING] if node == self.liar else []))
            self.manners[f"node {node}"] = self.random.choice(kinds)
        for source in SOURCES:
            kinds = (HONEST, HONEST, DOWN, PARTIAL, *([LYING] if source == self.wrong else []))
            self.manners[source] = self.random.choice(kinds)

    def answers(self, node: int, *, settled: bool) -> Answers:
        """Return what one node says of the holding, at its head or at its newest settled block."""
        manner = self.manners.get(f"node {node}", HONEST)
        behind = self.random.randint(1, 40) if manner == STALE else 0
        block = self.head - behind - (DEEP if settled else 0)
        has = self.held[block] and manner != LYING
        if self.leaf in AMOUNTS:
            return self._amounts(node, manner, block, behind, has=has)
        if manner == DOWN:
            return self._answers("no answer")
        unsure = {WALLET: "cut off"} if manner == PARTIAL else {}
        owns = has is (self.leaf is not AT_MOST_NONE)
        held = {WALLET: {"7": 1}} if owns and (manner != PARTIAL or self.random.random() < 0.5) else {}
        at = self.now - timedelta(seconds=behind * CHAIN.block_seconds)
        source = f"Base node {node + 1}"
        if self.leaf is CALLED:
            values = {} if unsure else {WALLET: int(has)}
            return self._answers(ViewSheet(CHAIN.key, QUESTION, block, at, node, source, values, unsure))
        made = self._answers(TokenSheet(CHAIN.key, COUNTED.contract, block, at, node, source, held, unsure))
        made.tokens[COUNTED.contract, SEVENTH.token_ids] = made.tokens[COUNTED.contract, ()]
        return made

    @staticmethod
    def _answers(said: TokenSheet | ViewSheet | str) -> Answers:
        answers = Answers(frozenset({WALLET}), tokens={(COUNTED.contract, ()): "not asked"})
        if isinstance(said, TokenSheet | str):
            answers.tokens[COUNTED.contract, ()] = said
        if isinstance(said, ViewSheet | str):
            answers.calls[QUESTION] = said
        return answers

    def _amounts(self, node: int, manner: str, block: int, behind: int, *, has: bool) -> Answers:
        """Return what a node says of a coin; a partial answer means that the contract gave none."""
        if manner == DOWN:
            return Answers(frozenset({WALLET}), coin_fault="no answer")
        cells = Cells(1, 1)
        cells.put(0, 0, None if manner == PARTIAL else AMOUNTS[self.leaf][0 if has else 1])
        at = self.now - timedelta(seconds=behind * CHAIN.block_seconds)
        source, contract = f"Base node {node + 1}", packed([COUNTED.contract])
        sheet = BalanceSheet(CHAIN.key, block, at, node, source, contract, packed([WALLET]), cells)
        return Answers(frozenset({WALLET}), sheet)

    def traits(self, source: str) -> TokenTraits | str:
        manner = self.manners.get(source, HONEST)
        if manner == DOWN:
            return "no answer"
        shown = FUR if manner == HONEST else OTHER
        return TokenTraits(shown, source, self.now, whole=manner in {HONEST, LYING})

    def told(self, answers: Answers, asked: Sequence[str]) -> TokenTraits | str | None:
        """Note and return the first full answer of these sources about the token, which always has gold fur."""
        found: TokenTraits | str | None = None
        for source in asked:
            found = self.traits(source)
            if isinstance(found, TokenTraits) and found.whole:
                break
        if found is not None:
            answers.traits[CHAIN.key, COUNTED.contract, "7"] = found
        return found


@dataclass(frozen=True)
class Taken:
    """The role was taken, on the word of one source alone or not."""

    one_source: bool


def look(world: World, grant: GrantFacts) -> GrantFacts | Taken:
    """Look once, with the confirmation, as the engine does; return the resulting grant, and note when to look again."""
    world.wait = None
    order = list(range(world.nodes))
    answers = next((one for node in order if _sheet(one := world.answers(node, settled=False))), None)
    if answers is None:
        return grant
    names = list(SOURCES[-world.sources :])
    told = world.told(answers, names)
    first = _read(world, answers)
    decision = _decide(world, grant, first.answer)
    if decision is Action.KEEP and keeps_differently(_decision(world, grant, first.answer), grant):
        return replace(grant, first_no="")
    if decision is not Action.TAKE:
        return grant
    sheet = _sheet(answers)
    assert sheet is not None
    others = [node for node in order if node != sheet.endpoint]
    before = told.source if isinstance(told, TokenTraits) else ""
    said: list[Reading] = []
    for node in (*others, sheet.endpoint):
        if _sheet(second := world.answers(node, settled=True)) is None:
            continue
        world.told(second, [name for name in names if name != before or world.sources == 1])
        said.append(_read(world, second))
        if not confirmation.is_partial(said[-1]) or not in_part(world.leaf, second):
            break
    if not said:
        return grant
    earlier, means = confirmation.parsed(grant.first_no), Means(world.nodes, world.sources)
    kept = earlier.get(confirmation.question_of(first))
    again = confirmation.second_of(first, said, kept, means, world.now)
    both: Confirmation = confirmation.confirm(first, again, kept, means, world.now)
    if _decide(world, grant, both.reading.answer) is Action.TAKE:
        return Taken(both.reading.one_source)
    world.wait = both.wait
    noted = confirmation.noted([first], [again], earlier, world.now)
    return replace(grant, first_no=json.dumps(confirmation.document(noted)))


def _sheet(answers: Answers) -> TokenSheet | ViewSheet | BalanceSheet | None:
    if answers.sheet is not None or answers.coin_fault is not None:
        return answers.sheet
    said = answers.calls.get(QUESTION, answers.tokens[COUNTED.contract, ()])
    return None if isinstance(said, str) else said


def _read(world: World, answers: Answers) -> Reading:
    return read(world.leaf, [("evm", WALLET)], answers)


def _decision(world: World, grant: GrantFacts, answer: Answer) -> Decision:
    rule = RuleTerms(1, grant.role_id, world.leaf, "active")
    (decision,) = decide([rule], {1: answer}, [grant], frozenset({grant.role_id}), world.now)
    return decision


def _decide(world: World, grant: GrantFacts, answer: Answer) -> Action:
    return _decision(world, grant, answer).action


@pytest.mark.parametrize(
    "leaf",
    [COUNTED, AT_MOST_NONE, SEVENTH, GOLD, CALLED, DOLLARS, NOT_TOO_MANY],
    ids=["counted", "at most none", "token id", "trait", "called", "coin", "at most of a coin"],
)
def test_no_holder_loses_the_role_and_no_former_holder_keeps_it(leaf: Requirement) -> None:
    taken = 0
    for seed in range(HISTORIES):
        world = World(Random(seed), leaf, nodes=1 + seed % 3, sources=1 + seed // 3 % 2)
        grant: GrantFacts | Taken = GrantFacts("role", "held", (1,))
        for _ in range(world.random.randint(0, 12)):
            world.upset()
            holds = world.random.random() < 0.8
            world.goes_on(timedelta(seconds=world.random.choice((0, 2, 6, 60, 400))), holds=holds)
            grant = look(world, grant)
            if isinstance(grant, Taken):
                # A single source may be wrong as long as no other one contradicts it; the breaker limits the damage.
                by_nodes = leaf is not GOLD
                honest = world.nodes == 1 and by_nodes
                held_all_along = all(world.held[_since(world, honest=by_nodes) :])
                assert not held_all_along or (grant.one_source and not honest), (seed, world.manners)
                break
        world.manners = manners_at_last(world)
        world.goes_on(timedelta(minutes=1), holds=False)
        healed, attempts = world.now, world.random.randint(0, 20)
        while not isinstance(grant, Taken) and world.now - healed < SOON:
            grant = look(world, grant)
            world.goes_on(timedelta(seconds=pause_after(attempts, world.wait)), holds=False)
            attempts += 1
        assert isinstance(grant, Taken), f"seed {seed}: who sold keeps the role: {grant}"
        taken += 1
    assert taken == HISTORIES


def manners_at_last(world: World) -> dict[str, str]:
    """Return the final behaviour: all honest, or of several nodes one is silent or (not the first) answers in part."""
    kind = world.random.choice((HONEST, DOWN, PARTIAL)) if world.nodes > 1 else HONEST
    return {f"node {world.random.randrange(int(kind == PARTIAL), world.nodes)}": kind}


def _since(world: World, *, honest: bool) -> int:
    """Return the oldest block whose answer can still count for a removal that two sources confirm.

    For counted tokens at most one node is wrong, and the other node's answer is at most minutes old. For traits, a
    source's much older answer still counts.
    """
    silent = confirmation.OTHERS_SILENT.total_seconds() if honest else 13 * 400
    return max(0, world.head - 40 - DEEP - int(silent / CHAIN.block_seconds))
