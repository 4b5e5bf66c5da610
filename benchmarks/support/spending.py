"""The daily spending of a server with balance rules at its providers: counted calls, added up by the settings."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil

from benchmarks.support import call_counts
from benchmarks.support.call_counts import DAY
from benchmarks.support.nft_chain import nft_chain
from gateways.chains.catalogue import CHAINS
from gateways.provider_plans import FREE, PAID, PUBLIC, Plan
from jobs.following.solana_follower import BEAT_SECONDS
from jobs.reconciler import BATCH
from services.health.provider_records import PROBED_UNFOLLOWED
from services.triggers.solana_poller import MOST_JOINED, OWNERS_AT_ONCE
from services.wallets.open_challenges import SLOWLY

EVM = tuple(key for key, chain in CHAINS.items() if chain.family == "evm")
PACES = (5, 60, 600)
MEMBERS = (10, 1_000, 100_000)
EXAMPLE = 5_000
COUNTED_MEMBERS = sorted((*MEMBERS, EXAMPLE))
COLLECTIONS = 3
SUPPLY = 5_000
"""Assets of the collection on Solana."""
OF_THE_EXAMPLE = ("ethereum", "base")
DAILY_EVENTS = {"purchases": 10, "sales": 10, "proofs": 5, "challenges": 1}
"""What a thousand members do in a day; a challenge for a transaction stays open for an hour."""
OPEN_SECONDS = 3_600
OFTEN = 600
"""Seconds between two sweeps for an operator who sweeps often instead of following."""

Calls = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Setup:
    """The settings that decide the spending, apart from the defaults."""

    follow: int = 60
    off: tuple[str, ...] = ()
    sweep: int = DAY

    def pace(self, chain: str) -> int:
        """Return the seconds between two polls; 0 for a chain that only sweeps cover."""
        return 0 if chain in self.off else self.follow

    @property
    def text(self) -> str:
        """Return the settings as lines of `.env`."""
        said = [f"`FOLLOW_SECONDS={self.follow}`"] if self.follow != DEFAULT.follow else []
        said += [f"`FOLLOW_SECONDS_{chain.upper()}=0`" for chain in self.off]
        said += [f"`SWEEP_SECONDS={self.sweep}`"] if self.sweep != DEFAULT.sweep else []
        return ", ".join(said) or "the defaults"


DEFAULT = Setup()
QUICK = Setup(5)
SPARING = {"alchemy": Setup(60, ("base",), 600), "infura": DEFAULT, "quicknode": Setup(120, ("base",), 600)}


def setups(plan: Plan) -> Sequence[Setup]:
    """Return the settings that the tables compare at a free plan."""
    return tuple(dict.fromkeys((DEFAULT, SPARING[plan.key], QUICK)))


@dataclass
class Counted:
    """The counts; following is counted when a table asks for it."""

    sweeps: dict[int, Calls] = field(default_factory=dict[int, Calls])
    """Members → calls of one sweep on one chain."""
    look: Calls = field(default_factory=dict[str, float])
    """One member's reconcile on one chain."""
    confirmation: Calls = field(default_factory=dict[str, float])
    """The second reading before a role is taken."""
    challenge: Calls = field(default_factory=dict[str, float])
    """One poll for the transaction of an open challenge, on one chain."""
    probes: dict[str, Calls] = field(default_factory=dict[str, Calls])
    delegated: Calls = field(default_factory=dict[str, float])
    """The delegations to the wallets of a thousand members, on one chain."""
    wallets: dict[tuple[int, int | None], Calls] = field(default_factory=dict[tuple[int, int | None], Calls])
    """Pace and blocks of logs a request → calls a day for following 500 members' wallets on Base."""
    solana: dict[int, Calls] = field(default_factory=dict[int, Calls])
    """Members → calls of one question about a collection."""
    follows: dict[tuple[str, int, int | None, bool], Calls] = field(
        default_factory=dict[tuple[str, int, int | None, bool], Calls]
    )

    def following(self, chain: str, pace: int, blocks: int | None, *, socket: bool = False) -> Calls:
        """Return the calls a day for following a chain, or for not following it with a pace of 0."""
        if not pace:
            return times(self.probes["base"], DAY / PROBED_UNFOLLOWED.total_seconds())
        return self.follows[chain, pace, blocks, socket]


async def count() -> Counted:
    """Count everything; starts an EVM node of its own."""
    found = Counted()
    with nft_chain() as node:
        node.fill(1, collections=COLLECTIONS, supply=1)
        for members in COUNTED_MEMBERS:
            found.sweeps[members] = await call_counts.balances(node, members, node.contracts)
        found.look = await call_counts.balances(node, 1, node.contracts)
        found.confirmation = await call_counts.balances(node, 1, node.contracts, settled=True)
    found.delegated = await call_counts.delegated(1_000)
    for blocks in {plan.log_blocks for plan in FREE}:
        for pace in PACES:
            found.wallets[pace, blocks] = await call_counts.following("base", pace, log_blocks=blocks, wallets=500)
    found.challenge = await call_counts.open_challenge()
    found.probes = {chain: await call_counts.probe(chain) for chain in ("base", "solana")}
    for members in {*COUNTED_MEMBERS, OWNERS_AT_ONCE}:
        found.solana[members] = await call_counts.solana_list(min(members, BATCH), SUPPLY)
    wanted = {(chain, pace, plan.log_blocks) for chain in EVM for pace in PACES for plan in FREE}
    for chain in OF_THE_EXAMPLE:
        wanted |= {(chain, QUICK.follow, plan.log_blocks) for plan in (*PAID, PUBLIC)}
        wanted |= {(chain, SPARING[plan.key].follow, plan.log_blocks) for plan in FREE}
    for chain, pace, blocks in wanted:
        found.follows[chain, pace, blocks, False] = await call_counts.following(chain, pace, log_blocks=blocks)
    for chain in EVM:
        found.follows[chain, 5, None, True] = await call_counts.following(chain, 5, socket=True)
    return found


def times(calls: Calls, factor: float) -> Calls:
    """Return these calls, multiplied."""
    return {method: factor * number for method, number in calls.items()}


def added(*calls: Calls) -> Calls:
    """Return the sum of these calls."""
    found = Counter[str]()
    for some in calls:
        for method, number in some.items():
            found[method] += number  # pyright: ignore[reportArgumentType]  # a count a day may be a fraction
    return found


def spent(
    counted: Counted, blocks: int | None, setup: Setup, members: int, chains: Sequence[str] = OF_THE_EXAMPLE
) -> Calls:
    """Return the calls a day of a server with balance rules on these chains, at nodes with so many blocks of logs."""
    return added(followed(counted, blocks, setup, chains), beside_following(counted, setup, members, chains))


def followed(counted: Counted, blocks: int | None, setup: Setup, chains: Sequence[str]) -> Calls:
    """Return the calls a day for following these chains."""
    return added(*(counted.following(chain, setup.pace(chain), blocks) for chain in chains))


def beside_following(counted: Counted, setup: Setup, members: int, chains: Sequence[str]) -> Calls:
    """Return the calls a day of the sweeps and of members' acts, on all of these chains."""
    thousands = members / 1_000
    one_chain = added(
        times(counted.sweeps[members], DAY / setup.sweep),
        times(counted.look, thousands * sum(DAILY_EVENTS.values())),
        times(counted.confirmation, thousands * DAILY_EVENTS["sales"]),
        times(counted.challenge, thousands * DAILY_EVENTS["challenges"] * OPEN_SECONDS / SLOWLY.total_seconds()),
    )
    return times(one_chain, len(chains))


def a_day(counted: Counted, plan: Plan, setup: Setup, members: int, chains: Sequence[str] = OF_THE_EXAMPLE) -> float:
    """Return the daily cost of such a server at the plan, in the plan's units."""
    return plan.cost(spent(counted, plan.log_blocks, setup, members, chains))


def in_turns(counted: Counted, plan: Plan, members: int, chains: Sequence[str]) -> tuple[Sequence[float], float]:
    """Return the daily cost of one of two plans in turns: for following each chain, and for everything else at most.

    A sweep asks one of the two nodes, and a sale asks both, so each is counted with all of it.
    """
    halves = [plan.cost(followed(counted, plan.log_blocks, DEFAULT, [chain])) / 2 for chain in chains]
    return halves, plan.cost(beside_following(counted, DEFAULT, members, chains))


def solana_following(counted: Counted, plan: Plan, requests: int) -> float:
    """Return the daily cost of following Solana with SOLANA_FOLLOW_REQUESTS; a question comes with a beat."""
    if not requests:
        return plan.cost(times(counted.probes["solana"], DAY / PROBED_UNFOLLOWED.total_seconds()))
    return plan.cost(times(counted.solana[OWNERS_AT_ONCE], DAY / _rest(counted, requests)))


def solana_pass(counted: Counted, requests: int, members: int) -> float:
    """Return the seconds in which following Solana reads every member of one collection once."""
    return ceil(members / (OWNERS_AT_ONCE * MOST_JOINED)) * _rest(counted, requests)


def solana_sweep(counted: Counted, plan: Plan, members: int) -> float:
    """Return what one sweep over Solana costs."""
    return plan.cost(times(counted.solana[members], ceil(members / BATCH)))


def _rest(counted: Counted, requests: int) -> float:
    """Return the seconds between two questions of following Solana."""
    return BEAT_SECONDS * ceil(sum(counted.solana[OWNERS_AT_ONCE].values()) * 60 / requests / BEAT_SECONDS)


def number(value: float) -> str:
    """Return a number with at most three digits: 1.23 M, 45.6 k, 789."""
    for size, letter in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= size * 0.9995:
            return f"{value / size:.3g}".replace("e+03", "000") + letter
    return f"{value:.0f}" if value >= 100 or value == int(value) else f"{value:.2g}"


def share(value: float, plan: Plan) -> str:
    """Return the percentage of the plan's day."""
    part = 100 * value / (plan.a_day or value)
    return f"{part:.0f} %" if part >= 1 else "under 1 %"


def lasts(value: float, plan: Plan) -> str:
    """Return how long the allowance lasts at so much a day."""
    days = (plan.allowance or 0) / value
    if days >= plan.days:
        return "all the time"
    return f"{days:.1f} days" if days >= 1 else f"{24 * days:.1f} hours"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
