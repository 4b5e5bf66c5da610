"""Random rules and histories through a whole reconcile: reading, traits, confirming and deciding, with fake nodes.

Rules combine conditions of every kind, including tokens that must not be held; each kind has its own histories. At
most one node and one source of traits answer falsely; all of them may be silent, behind, or answer in part.
"""

import json
import os
import random as chance
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from random import Random
from types import SimpleNamespace
from typing import cast

import pytest

from gateways import Gateways
from gateways.chains import node_providers
from gateways.chains.balance_sheet import BalanceSheet, Cells, Segment, packed
from gateways.chains.catalogue import CHAINS
from gateways.chains.indexer import LISTS
from gateways.chains.metadata_traits import Trait, TraitList
from gateways.chains.read_point import ReadPoint
from gateways.chains.token_sheet import TokenHints, TokenSheet
from gateways.chains.view_sheet import ViewQuestion, ViewSheet
from gateways.evm.rpc.node import Head
from gateways.solana.balances import balances_of
from gateways.solana.node import SolanaNode
from gateways.transport.errors import ProviderDown
from services.core import queue
from services.core.answer import Answer
from services.core.queue import Claim
from services.core.queue.claims import pause_after
from services.engine import read_and_confirm
from services.engine.cases import Case
from services.engine.decide import Action, GrantFacts, keeps_differently
from services.engine.reconcile_outcome import CaseOutcome, ServerChain
from services.holdings import confirmation
from services.holdings.fetch import HoldingsQuestion
from services.holdings.fetch_plan import by_chain
from services.rules.expression import AtLeast, Expression, Not, Requirement, evaluate, requirements
from services.rules.rule_terms import RuleTerms
from services.rules.types.address_list import AddressList
from services.rules.types.coin import CoinAmount
from services.rules.types.own_tables import OwnTables
from services.rules.types.view_call import ViewCall
from tests.support.builders import snowflake

HISTORIES = int(os.environ.get("HISTORIES", "400"))
"""Number of random histories for each kind; `make fuzz` runs many more."""
START = datetime(2026, 1, 2, tzinfo=UTC)
CHAIN = CHAINS["base"]
SOLANA = CHAINS["solana"]
SLOTS_A_BLOCK = round(CHAIN.block_seconds / SOLANA.block_seconds)
WALLET, SOLANA_WALLET = "0x" + "a1" * 20, "5o" * 16
WALLETS = {CHAIN.key: WALLET, SOLANA.key: SOLANA_WALLET}
COINS = {CHAIN.key: "0x" + "c2" * 20, SOLANA.key: "Co" * 16}
STAKING, STAKED = "0x" + "c3" * 20, "staked(address) view returns (uint256)"
LIST = "1" * 32
DECIMALS, PIECE, HALF = 6, 60, "61.5"
"""Coins are held in pieces of PIECE coins: one piece is less than HALF, two are more."""
CONTRACTS = ("0x" + "c0" * 20, "0x" + "c1" * 20)
TOKENS = tuple((contract, str(number)) for contract in CONTRACTS for number in (1, 2))
THINGS = (
    *TOKENS, *((place, str(number)) for place in (*COINS.values(), STAKING) for number in (1, 2)), (LIST, ""),
)  # fmt: skip
"""Everything that a wallet can have: tokens, pieces of coins, staked tokens, and a place on the list."""
GOLD, GRAY = (Trait("Fur", "Gold"),), (Trait("Fur", "Gray"),)
HONEST, DOWN, STALE, LYING, PARTIAL = "honest", "down", "stale", "lying", "partial"
BEHIND = 40
"""Blocks by which a node may lag and still be trusted."""
SOON = timedelta(minutes=45)
"""How long after the first honest answers a member who does not hold must have lost the role."""
Held = frozenset[tuple[str, str]]


@dataclass
class World:
    """What one wallet holds at each block, and how the nodes and sources of traits behave now."""

    random: Random
    nodes: int
    sources: int
    now: datetime = START
    held: list[Held] = field(default_factory=list[Held], repr=False)
    manners: dict[str, str] = field(default_factory=dict[str, str])
    liar: int = -1
    wrong: str = ""
    order: list[int] = field(default_factory=list[int])
    """The nodes in the order in which the settings have them at present."""

    def __post_init__(self) -> None:
        self.order = list(range(self.nodes))
        self.gold = frozenset(one for one in TOKENS if self.random.random() < 0.6)
        self.held = [self.some()] * 400
        if self.nodes > 1 and self.random.random() < 0.7:
            self.liar = self.random.randrange(self.nodes)
        if self.sources > 1 and self.random.random() < 0.7:
            self.wrong = self.random.choice(("opensea", "metadata"))

    def some(self) -> Held:
        return frozenset(one for one in THINGS if self.random.random() < 0.5)

    def goes_on(self, seconds: float, held: Held) -> None:
        self.now += timedelta(seconds=seconds)
        self.held += [held] * int(seconds / CHAIN.block_seconds)

    def settings(self) -> SimpleNamespace:
        """Return the settings with the nodes, each of its own provider."""
        urls = tuple(f"https://rpc.provider{node}.com" for node in self.order)
        return SimpleNamespace(rpc=dict.fromkeys(WALLETS, urls))

    def upset(self) -> None:
        if self.nodes > 1 and self.random.random() < 0.3:
            # Another order of the nodes, perhaps without one of them.
            self.order = self.random.sample(range(self.nodes), self.random.choice((2, self.nodes)))
        for node in range(self.nodes):
            kinds = (HONEST, HONEST, DOWN, STALE, PARTIAL, *([LYING] if node == self.liar else []))
            self.manners[f"node {node}"] = self.random.choice(kinds)
        for source in ("opensea", "metadata"):
            kinds = (HONEST, HONEST, DOWN, *([LYING] if source == self.wrong else []))
            self.manners[source] = self.random.choice(kinds)

    def leaf(self, leaf: Requirement, held: Held) -> Answer:
        """Return the true answer for a condition."""
        if leaf.type == "address_list":
            return Answer.YES if (LIST, "") in held else Answer.NO
        mine = [one for one in held if one[0] == leaf.contract or (leaf.contract == "any" and one in TOKENS)]
        if isinstance(leaf.details, CoinAmount):
            amount, least, most = PIECE * len(mine), leaf.details.least, leaf.details.most
            fits = float(least or 0) <= amount <= float(most or amount)
            return Answer.YES if fits else Answer.NO
        if leaf.type == "token_id":
            mine = [one for one in mine if one[1] in leaf.token_ids]
        if leaf.type == "trait":
            mine = [one for one in mine if one in self.gold]
        least = int(leaf.details.value) if isinstance(leaf.details, ViewCall) else leaf.min_tokens
        most = len(mine) if leaf.max_tokens is None else leaf.max_tokens
        return Answer.YES if least <= len(mine) <= most else Answer.NO

    def surely(self, rule: Expression, since: int) -> Answer:
        """Return the answer that holds in every mixture of views of the blocks since then.

        A condition whose answer changed counts as unknown.
        """
        views = set(self.held[max(0, since) :])
        said = {leaf: {self.leaf(leaf, held) for held in views} for leaf in requirements(rule)}
        return evaluate(rule, lambda leaf: next(iter(said[leaf])) if len(said[leaf]) == 1 else Answer.UNKNOWN)

    def view(self, place: int, *, depth: int = 0) -> tuple[int, datetime, Held, bool]:
        """Return the block of a node's answer, its time, the holdings it reports, and whether these are complete.

        The node is named by its place in the settings. The answer is `depth` blocks deep.
        """
        node = self.order[place]
        manner = self.manners.get(f"node {node}", HONEST)
        if manner == DOWN:
            raise ProviderDown(f"Base (node {node + 1})", "no answer")
        behind = self.random.randint(1, BEHIND) if manner == STALE else 0
        block = len(self.held) - 1 - behind - depth
        held = self.some() if manner == LYING else self.held[block]
        return block, self.now - timedelta(seconds=behind * CHAIN.block_seconds), held, manner != PARTIAL


@dataclass
class Nodes:
    """The chains as the engine sees them."""

    world: World

    def endpoints(self, chain: str) -> int:
        return len(self.world.order)

    async def contract_standard(self, chain: str, contract: str) -> str:
        return "ERC721"

    def _view(self, at: ReadPoint, chain: str = CHAIN.key) -> tuple[int, int, datetime, Held, bool]:
        # Solana's nodes can't be asked about an earlier slot.
        depth = CHAIN.settled_after if at.settled and chain == CHAIN.key else 0
        fault = ProviderDown("Base", "no node is set")
        for node in range(len(self.world.order)) if at.endpoint is None else [at.endpoint]:
            try:
                return node, *self.world.view(node, depth=depth)
            except ProviderDown as down:
                fault = down
        raise fault

    async def balances(self, chain: str, segments: Sequence[Segment], *, at: ReadPoint) -> list[BalanceSheet]:
        node, block, time, held, whole = self._view(at, chain)
        found: list[BalanceSheet] = []
        if chain == SOLANA.key:
            slot, source = block * SLOTS_A_BLOCK, SolanaNode(node, f"https://node-{node + 1}.example")
            amounts = {coin: {SOLANA_WALLET: _amount(coin, held)} if whole else {} for coin in segments[0].contracts}
            return [balances_of(source, slot, Head(slot, time), {}, segments[0].owners, amounts)]
        for segment in segments:
            contracts = packed(segment.contracts)
            cells = Cells(len(contracts) // 20, len(segment.owners))
            for place in range(len(contracts) // 20):
                name = f"0x{contracts[place * 20 : place * 20 + 20].hex()}"
                cells.put(place, 0, _amount(name, held) if whole else None)
            source = f"Base node {node + 1}"
            found.append(BalanceSheet(chain, block, time, node, source, contracts, packed(segment.owners), cells))
        return found

    async def tokens(
        self, chain: str, contract: str, owners: Sequence[str], *, token_ids: Sequence[str],
        trails: Mapping[str, TokenHints], at: ReadPoint,
    ) -> TokenSheet:  # fmt: skip
        node, block, time, held, whole = self._view(at)
        mine = {one[1]: 1 for one in sorted(held) if one[0] == contract and (not token_ids or one[1] in token_ids)}
        return self._sheet(contract, node, block, time, mine, whole=whole, alone="")

    async def view(self, chain: str, call: ViewQuestion, owners: Sequence[str], *, at: ReadPoint) -> ViewSheet:
        node, block, time, held, whole = self._view(at)
        values, unsure = {WALLET: _amount(STAKING, held)}, {WALLET: "cut off"}
        source = f"Base node {node + 1}"
        return ViewSheet(chain, call, block, time, node, source, values if whole else {}, {} if whole else unsure)

    async def anything(
        self, chain: str, owners: Sequence[str], *, trails: Mapping[str, TokenHints], at: ReadPoint
    ) -> TokenSheet:
        node, block, time, held, whole = self._view(at)
        mine = {f"{contract}:{number}": 1 for contract, number in sorted(held) if contract in CONTRACTS}
        # The logs are searched when a loss is confirmed; until then only the indexers say that there is nothing.
        return self._sheet("any", node, block, time, mine, whole=whole, alone="" if at.settled or mine else LISTS)

    def _sheet(
        self, contract: str, node: int, block: int, at: datetime, mine: dict[str, int], *, whole: bool, alone: str
    ) -> TokenSheet:
        held = {WALLET: dict(list(mine.items())[: None if whole else 1])} if mine else {}
        return TokenSheet(
            CHAIN.key, contract, block, at, node, f"Base node {node + 1}", held, {} if whole else {WALLET: "cut off"},
            alone={WALLET: alone} if alone else {},
        )  # fmt: skip


def _amount(contract: str, held: Held) -> int:
    """Return what a contract answers: a number of tokens, or an amount in the coin's smallest unit."""
    return sum(one[0] == contract for one in held) * (PIECE * 10**DECIMALS if contract in COINS.values() else 1)


@dataclass
class Teller:
    """A source of traits: OpenSea, or the tokens' own metadata."""

    world: World
    name: str

    def _said(self, contract: str, token_id: str) -> TraitList | ProviderDown:
        manner = self.world.manners.get(self.name, HONEST)
        if manner == DOWN or (self.name == "opensea" and self.world.sources < 2):
            return ProviderDown(self.name, "no answer")
        return TraitList(GOLD if ((contract, token_id) in self.world.gold) is (manner == HONEST) else GRAY)

    async def nft(self, chain: str, contract: str, token_id: str) -> TraitList:
        said = self._said(contract, token_id)
        if isinstance(said, ProviderDown):
            raise said
        return said

    async def nfts(self, chain: str, tokens: Sequence[tuple[str, str]]) -> dict[tuple[str, str], TraitList]:
        return {token: await self.nft(chain, *token) for token in tokens}

    async def traits(
        self, chain: str, contract: str, token_ids: Sequence[str], *, apart_from: str = ""
    ) -> dict[str, TraitList | ProviderDown]:
        return {token_id: self._said(contract, token_id) for token_id in token_ids}


def a_coin(random: Random, chain: str) -> Requirement:
    least, most = random.choice(((HALF, None), (str(PIECE), None), (None, HALF), (HALF, "200")))
    return Requirement("token", chain, COINS[chain], details=CoinAmount(least, most, DECIMALS))


def a_maximum(random: Random) -> Requirement:
    leaf = a_leaf(random, random.choice(("basic", "trait")))
    least = random.choice((0, 0, 1))
    return replace(leaf, min_tokens=least, max_tokens=random.choice((least, 1)))


def a_leaf(random: Random, kind: str) -> Requirement:
    if kind == "any_nft":
        return Requirement("any_nft", CHAIN.key, "any")
    if kind in {"coin", "coin on Solana"}:
        return a_coin(random, CHAIN.key if kind == "coin" else SOLANA.key)
    if kind == "call":
        return Requirement("call", CHAIN.key, STAKING, details=ViewCall(STAKED, value=random.choice("12")))
    if kind == "list":
        return Requirement("address_list", "", "", details=AddressList(LIST, 1))
    if kind == "maximum":
        return a_maximum(random)
    leaf = Requirement(kind, CHAIN.key, random.choice(CONTRACTS))
    if kind == "trait":
        return replace(leaf, traits=(("Fur", "Gold"),), min_tokens=random.choice((1, 1, 2)))
    if kind == "token_id":
        return replace(leaf, token_ids=(random.choice("12"),))
    return replace(leaf, min_tokens=random.choice((1, 1, 2)))


KINDS = ("basic", "token_id", "trait", "any_nft", "coin", "coin on Solana", "call", "list", "maximum")
USUAL = (*KINDS, "basic", "trait")


def a_rule(random: Random, kind: str) -> Expression:
    """Return a rule with a condition of this kind, alone or combined with others, each possibly negated."""
    kinds = [kind, *(random.choice(USUAL) for _ in range(random.choice((0, 0, 1, 2))))]
    branches = tuple(
        Not(leaf) if random.random() < 0.3 else leaf for leaf in (a_leaf(random, one) for one in kinds)
    )  # fmt: skip
    return branches[0] if len(branches) == 1 else AtLeast(random.randint(1, len(branches)), branches)


def a_negation(random: Random) -> Expression:
    """Return a negated condition of any kind, alone or combined with one that must hold."""
    unwanted = Not(a_leaf(random, random.choice(KINDS)))
    if random.random() < 0.5:
        return unwanted
    return AtLeast(random.randint(1, 2), (unwanted, a_leaf(random, random.choice(KINDS))))


@dataclass(frozen=True)
class Taken:
    """The role was taken, on the word of one source alone or not."""

    one_source: bool


@dataclass
class Play:
    """A member with a role by a rule, who is reconciled again and again."""

    world: World
    rule: Expression
    outside: Gateways
    grant: GrantFacts | Taken = field(default_factory=lambda: GrantFacts("role", "held", (1,)))
    again_in: float | None = None

    async def look(self) -> None:
        """Reconcile the member once, with the confirmation, and store the grant that results."""
        if isinstance(self.grant, Taken):
            return
        terms = (RuleTerms(1, "role", self.rule, "active"),)
        wants = by_chain(requirements(self.rule), {})
        case = Case(
            Claim(1, "77", 0, 0, queue.SWEPT), snowflake(), True, True, False, frozenset({"role"}), terms,
            (("evm", WALLET), ("solana", SOLANA_WALLET)), (self.grant,), wants,
            tables=OwnTables({LIST: frozenset({WALLET} if (LIST, "") in self.world.held[-1] else ())}, self.world.now),
        )  # fmt: skip
        wanted: dict[ServerChain, HoldingsQuestion] = {
            (1, chain): HoldingsQuestion(chain, want, (WALLETS[chain],), server_id=1) for chain, want in wants.items()
        }
        (item,) = (await read_and_confirm.decide_cases(self.outside, [case], wanted, self.world.now)).outcomes
        self.again_in = item.again_in
        self.grant = _settled(item, self.grant)


def _settled(item: CaseOutcome, grant: GrantFacts) -> GrantFacts | Taken:
    (decision,) = item.decisions
    if decision.action is Action.TAKE:
        return Taken(any(one.one_source for one in item.evidence(decision)))
    if decision.action is Action.KEEP and keeps_differently(decision, grant):
        return replace(grant, first_no="")
    if "role" in item.first_no:
        return replace(grant, first_no=json.dumps(confirmation.document(item.first_no["role"])))
    return grant


@pytest.mark.parametrize("kind", [*KINDS, "not"])
async def test_who_is_right_by_every_view_keeps_the_role_and_who_is_not_loses_it_soon(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.collections.trait_sources.sources_on", lambda outside, chain: outside.trait_sources)
    lost = 0
    for seed in range(HISTORIES):
        chance.seed(seed)  # the engine shuffles its questions: without a seed the order would change each time
        nodes, sources = 1 + seed % 3, 1 + seed // 3 % 2
        world = World(random := Random(f"{kind} {seed}"), nodes, sources)
        monkeypatch.setattr(node_providers, "settings", world.settings)
        teller = SimpleNamespace(opensea=Teller(world, "opensea"), metadata=Teller(world, "metadata"))
        teller.chains, teller.delegations, teller.trait_sources = Nodes(world), None, sources
        rule = a_negation(random) if kind == "not" else a_rule(random, kind)
        play = Play(world, rule, cast(Gateways, cast(object, teller)))
        for _ in range(random.randint(0, 12)):
            world.upset()
            world.goes_on(random.choice((0, 2, 6, 60, 400)), world.held[-1] if random.random() < 0.6 else world.some())
            await play.look()
            if isinstance(play.grant, Taken):
                silent = 13 * 400 if any(leaf.type == "trait" for leaf in requirements(play.rule)) else 300
                since = len(world.held) - 1 - BEHIND - CHAIN.settled_after - int(silent / CHAIN.block_seconds)
                right = world.surely(play.rule, since) is Answer.YES
                assert not right or (play.grant.one_source and nodes > 1), (seed, play.rule, world.manners)
                break
        world.manners.clear()
        if nodes > 1 and (manner := random.choice((HONEST, DOWN, PARTIAL))):
            # The first node never answers in part: the engine would then know too little to begin with.
            place = random.randrange(int(manner == PARTIAL), len(world.order))
            world.manners[f"node {world.order[place]}"] = manner
        world.goes_on(60, last := world.some())
        right = world.surely(play.rule, len(world.held) - 1) is Answer.YES
        healed, attempts, before = world.now, random.randint(0, 20), play.grant
        while not isinstance(play.grant, Taken) and world.now - healed < SOON:
            await play.look()
            world.goes_on(pause_after(attempts, play.again_in), last)
            attempts += 1
            if right and world.now - healed > timedelta(minutes=15):
                break
        if right:
            assert before is play.grant or not isinstance(play.grant, Taken), (seed, play.rule)
        else:
            assert isinstance(play.grant, Taken), (seed, play.rule, play.grant)
            lost += 1
    assert lost > HISTORIES // 4


async def test_what_another_node_of_the_same_provider_said_before_does_not_confirm_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    urls = ("https://a.one.com", "https://b.one.com", "https://two.com")
    monkeypatch.setattr(node_providers, "settings", lambda: SimpleNamespace(rpc=dict.fromkeys(WALLETS, urls)))
    monkeypatch.setattr("services.collections.trait_sources.sources_on", lambda *_: 1)
    world = World(Random(0), nodes=3, sources=1)
    outside = SimpleNamespace(chains=Nodes(world), delegations=None)
    play = Play(world, Requirement("basic", CHAIN.key, CONTRACTS[0]), cast(Gateways, cast(object, outside)))
    for twin, minutes, taken in ((1, 1, False), (0, 1, False), (0, 4, True)):
        world.goes_on(minutes * 60, frozenset())
        world.manners = {f"node {node}": HONEST if node == twin else DOWN for node in range(3)}
        await play.look()
        assert isinstance(play.grant, Taken) is taken, (twin, minutes)
