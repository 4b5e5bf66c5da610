"""What a server costs a day at its providers: the tables of docs/first-contact.md.

`python -m benchmarks.costs` prints them, `--write` puts them into the page. The calls are counted
(`benchmarks/support/reads.py`) while the product's own readers work, so a reader that asks otherwise changes the
tables; the prices are in `gateways/provider_plans.py`.
"""

import argparse
import asyncio
import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil

from benchmarks.support import reads
from benchmarks.support.lab import ROOT, lab
from benchmarks.support.reads import DAY
from gateways.chains.catalogue import CHAINS
from gateways.evm.balances.fallbacks import AGGREGATE_CHECKS
from gateways.marketplaces.opensea import TOKENS_A_BATCH
from gateways.provider_plans import ALCHEMY_LIST, FREE, HELIUS, OPENSEA_READS_AN_HOUR, PAID, PUBLIC, SOLANA, Plan
from jobs.reconciler import BATCH
from jobs.solana_follower import BEAT_SECONDS
from services.health.provider_log import PROBED_UNFOLLOWED
from services.triggers.solana_poller import OWNERS_AT_ONCE
from services.wallets import bio_schedule
from services.wallets.watch_schedule import SLOWLY

PAGE = ROOT / "docs" / "first-contact.md"
EVM = tuple(key for key, chain in CHAINS.items() if chain.family == "evm")
PACES = (5, 60, 600)
MEMBERS = (10, 1_000, 100_000)
EXAMPLE = 5_000
COLLECTIONS = 3
SUPPLY = 5_000
"""Assets of the collection on Solana."""
OF_THE_EXAMPLE = ("ethereum", "base")
LIFE = {"purchases": 10, "sales": 10, "proofs": 5, "challenges": 1}
"""What a thousand members do a day; a challenge for a transaction stays open for an hour."""
OPEN_SECONDS = 3_600
SOON_IN_THE_BIO = 120
"""Seconds after which most people have saved the code in their bio."""
OFTEN = 600
"""Seconds between two sweeps for an operator who sweeps often instead of following."""

Calls = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Setup:
    """The settings that decide what is spent, beside the defaults."""

    follow: int = 60
    off: tuple[str, ...] = ()
    sweep: int = DAY

    def pace(self, chain: str) -> int:
        """Seconds between two polls; 0 for a chain that only sweeps cover."""
        return 0 if chain in self.off else self.follow

    @property
    def text(self) -> str:
        """As lines of `.env`."""
        said = [f"`FOLLOW_SECONDS={self.follow}`"] if self.follow != DEFAULT.follow else []
        said += [f"`FOLLOW_SECONDS_{chain.upper()}=0`" for chain in self.off]
        said += [f"`SWEEP_SECONDS={self.sweep}`"] if self.sweep != DEFAULT.sweep else []
        return ", ".join(said) or "the defaults"


DEFAULT = Setup()
QUICK = Setup(5)
SPARING = {
    "alchemy": Setup(60, ("base",), 600),
    "infura": DEFAULT,
    "quicknode": Setup(120, ("base",), 600),
}


def setups(plan: Plan) -> Sequence[Setup]:
    """Return the settings that the tables compare at a free plan."""
    return tuple(dict.fromkeys((DEFAULT, SPARING[plan.key], QUICK)))


@dataclass
class Counted:
    """What was counted; following is counted when a table asks for it."""

    rounds: dict[int, Calls] = field(default_factory=dict[int, Calls])
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
    """Pace and blocks of logs a request → calls a day of following 500 members' wallets on Base."""
    solana: dict[int, Calls] = field(default_factory=dict[int, Calls])
    """Members → calls of one question about a collection."""
    follows: dict[tuple[str, int, int | None, bool], Calls] = field(
        default_factory=dict[tuple[str, int, int | None, bool], Calls]
    )

    def following(self, chain: str, pace: int, blocks: int | None, *, socket: bool = False) -> Calls:
        """Calls a day of following a chain, or of leaving it alone with a pace of 0."""
        if not pace:
            return times(self.probes["base"], DAY / PROBED_UNFOLLOWED.total_seconds())
        return self.follows[chain, pace, blocks, socket]


async def count() -> Counted:
    """Count everything; starts an EVM node of its own."""
    found = Counted()
    with lab() as node:
        node.fill(1, collections=COLLECTIONS, supply=1)
        for members in sorted({*MEMBERS, EXAMPLE}):
            found.rounds[members] = await reads.balances(node, members, node.contracts)
        found.look = await reads.balances(node, 1, node.contracts)
        found.confirmation = await reads.balances(node, 1, node.contracts, settled=True)
    found.delegated = await reads.delegated(1_000)
    for blocks in {plan.log_blocks for plan in FREE}:
        for pace in PACES:
            found.wallets[pace, blocks] = await reads.following("base", pace, log_blocks=blocks, wallets=500)
    found.challenge = await reads.open_challenge()
    found.probes = {chain: await reads.probe(chain) for chain in ("base", "solana")}
    for members in sorted({*MEMBERS, EXAMPLE, OWNERS_AT_ONCE}):
        found.solana[members] = await reads.solana_list(min(members, BATCH), SUPPLY)
    paces = {*PACES, *(one.follow for one in SPARING.values())}
    for chain in EVM:
        for blocks in {plan.log_blocks for plan in (*FREE, *PAID, PUBLIC)}:
            for pace in paces:
                found.follows[chain, pace, blocks, False] = await reads.following(chain, pace, log_blocks=blocks)
        found.follows[chain, 5, None, True] = await reads.following(chain, 5, socket=True)
    return found


def times(calls: Calls, factor: float) -> Calls:
    """So many times these calls."""
    return {method: factor * number for method, number in calls.items()}


def added(*calls: Calls) -> Calls:
    """All of these calls together."""
    found = Counter[str]()
    for some in calls:
        for method, number in some.items():
            found[method] += number  # pyright: ignore[reportArgumentType]  # a count a day may be a fraction
    return found


def a_day(counted: Counted, plan: Plan, setup: Setup, members: int, chains: Sequence[str] = OF_THE_EXAMPLE) -> float:
    """What a server with rules about balances on these chains costs at the plan, in its units."""
    thousands = members / 1_000
    calls: list[Calls] = []
    for chain in chains:
        calls += [
            counted.following(chain, setup.pace(chain), plan.log_blocks),
            times(counted.rounds[members], DAY / setup.sweep),
            times(counted.look, thousands * (LIFE["purchases"] + LIFE["sales"] + LIFE["proofs"] + LIFE["challenges"])),
            times(counted.confirmation, thousands * LIFE["sales"]),
            times(counted.challenge, thousands * LIFE["challenges"] * OPEN_SECONDS / SLOWLY.total_seconds()),
        ]
    return plan.cost(added(*calls))


def solana_following(counted: Counted, plan: Plan, requests: int) -> float:
    """What following Solana costs a day with SOLANA_FOLLOW_REQUESTS; a question comes with a beat."""
    if not requests:
        return plan.cost(times(counted.probes["solana"], DAY / PROBED_UNFOLLOWED.total_seconds()))
    question = counted.solana[OWNERS_AT_ONCE]
    rests = BEAT_SECONDS * ceil(sum(question.values()) * 60 / requests / BEAT_SECONDS)
    return plan.cost(times(question, DAY / rests))


def number(value: float) -> str:
    """Three digits: 1.23 M, 45.6 k, 789."""
    for size, letter in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= size * 0.9995:
            return f"{value / size:.3g}".replace("e+03", "000") + letter
    return f"{value:.0f}" if value >= 100 or value == int(value) else f"{value:.2g}"


def share(value: float, plan: Plan) -> str:
    """The part of the plan's day, in hundredths."""
    part = 100 * value / (plan.a_day or value)
    return f"{part:.0f} %" if part >= 1 else "under 1 %"


def lasts(value: float, plan: Plan) -> str:
    """How long the allowance lasts at so much a day."""
    days = (plan.allowance or 0) / value
    if days >= plan.days:
        return "all the time"
    return f"{days:.1f} days" if days >= 1 else f"{24 * days:.1f} hours"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def plans_table(_: Counted) -> str:
    """The plans with their allowances."""
    rows = [
        [
            f"[{plan.title}]({plan.page})", plan.price,
            "—" if plan.allowance is None
            else f"{number(plan.allowance)} {plan.unit} a {'day' if plan.days == 1 else 'month'}",
            plan.a_second, "all" if plan.log_blocks is None else f"{plan.log_blocks:,}",
        ]
        for plan in (*FREE, *PAID, *SOLANA)
    ]  # fmt: skip
    for row, plan in zip(rows, (*FREE, *PAID, *SOLANA), strict=True):
        row[-1] = "—" if plan in SOLANA else row[-1]
    return table(("Plan", "Price", "Allowance", "A second", "Blocks of logs a request"), rows)


def following_table(plan: Plan) -> Callable[[Counted], str]:
    """A table of what following each chain costs a day at one plan."""

    def made(counted: Counted) -> str:
        rows: list[list[str]] = []
        for chain in EVM:
            row = [CHAINS[chain].title]
            for pace in (*PACES, 0):
                value = plan.cost(counted.following(chain, pace, plan.log_blocks))
                row.append(number(value) + (f" ({share(value, plan)})" if plan.allowance else ""))
            if plan.key == PUBLIC.key:
                row.append(number(plan.cost(counted.following(chain, 5, None, socket=True))))
            rows.append(row)
        head = [f"{plan.unit} a day", *(f"every {pace} s" for pace in PACES), "not followed"]
        return table([*head, "every 5 s, with a socket"] if plan.key == PUBLIC.key else head, rows)

    return made


_ROUND = ("eth_getBlockByNumber", "eth_call")
_NAMES = {plan.key: plan.title.split()[0] for plan in FREE}
_UNITS = [f"{plan.unit}, {_NAMES[plan.key]}" for plan in FREE]


def rounds_table(counted: Counted) -> str:
    """Return what one sweep costs on one chain."""
    rows: list[list[str]] = []
    for members in sorted({*MEMBERS, EXAMPLE}):
        calls = counted.rounds[members]
        once = [plan.cost(calls) for plan in FREE]
        often = [share(value * DAY / OFTEN, plan) for value, plan in zip(once, FREE, strict=True)]
        rows.append([f"{members:,}", *(number(calls[method]) for method in _ROUND), *map(number, once), *often])
    often_named = (f"{name}, every 10 minutes" for name in _NAMES.values())
    return table(("Members", *(f"`{method}`" for method in _ROUND), *_UNITS, *often_named), rows)


def fallbacks_table(counted: Counted) -> str:
    """Return the number of `eth_call` requests of a sweep on one chain, by what its node supports."""
    rows = [
        [
            f"{members:,}",
            number(counted.rounds[members]["eth_call"]),
            f"{ceil(members * COLLECTIONS / AGGREGATE_CHECKS):,}",
            f"{members * COLLECTIONS:,}",
        ]
        for members in sorted({*MEMBERS, EXAMPLE})
    ]
    return table(("Members", "with state override", "without", "without Multicall3 as well"), rows)


def events_table(counted: Counted) -> str:
    """What a member's activity costs on each chain that the server's rules name."""
    kinds = {
        "a purchase, a re-check, a proof by a bio": counted.look,
        "a sale (two readings)": added(counted.look, counted.confirmation),
        "an open challenge for a transaction, an hour": times(
            counted.challenge, OPEN_SECONDS / SLOWLY.total_seconds()
        ),
    }  # fmt: skip
    rows = [
        [kind, number(sum(calls.values()) - calls.get("batch", 0)), *(number(plan.cost(calls)) for plan in FREE)]
        for kind, calls in kinds.items()
    ]
    return table(("On one chain", "calls", *_UNITS), rows)


def expensive_table(counted: Counted) -> str:
    """What rules cost that ask more than balances of collections."""
    delegated = (number(plan.cost(counted.delegated)) for plan in FREE)
    rows = [
        ["delegations to the wallets of 1,000 members, a sweep", *delegated],
        *(
            [
                f"following 500 wallets for rules about any NFT, every {pace} s, a day",
                *(number(plan.cost(counted.wallets[pace, plan.log_blocks])) for plan in FREE),
            ]
            for pace in PACES
        ),
    ]  # fmt: skip
    return table(("On one chain (wallets: on Base)", *_UNITS), rows)


def totals_table(counted: Counted) -> str:
    """What a server costs a day at the free plans, by the settings."""
    rows: list[list[str]] = []
    for plan in FREE:
        for setup in setups(plan):
            values = [a_day(counted, plan, setup, members) for members in MEMBERS]
            rows.append(
                [plan.title, setup.text, *(f"{number(value)} {plan.unit} ({share(value, plan)})" for value in values)]
            )
    return table(("Plan", "Settings", *(f"{members:,} members" for members in MEMBERS)), rows)


def paid_table(counted: Counted) -> str:
    """What a server costs a day at the paid plans, followed quickly."""
    rows: list[list[str]] = []
    for plan in PAID:
        row = [plan.title, plan.price]
        for members in MEMBERS:
            value = a_day(counted, plan, QUICK, members)
            row.append(
                f"{number(value)} {plan.unit} "
                + (f"(${value * plan.dollars / 1e6:.2f})" if plan.dollars else f"({share(value, plan)})")
            )
        rows.append(row)
    return table(("Plan", "Price", *(f"{members:,} members" for members in MEMBERS)), rows)


def example_table(counted: Counted) -> str:
    """The worked example."""
    rows: list[list[str]] = []
    for plan in FREE:
        for setup in setups(plan):
            value = a_day(counted, plan, setup, EXAMPLE)
            parts = [
                plan.cost(counted.following(chain, setup.pace(chain), plan.log_blocks)) for chain in OF_THE_EXAMPLE
            ]
            rest = value - sum(parts)
            rows.append(
                [plan.title, setup.text, *map(number, parts), number(rest), f"**{number(value)}**", share(value, plan),
                 lasts(value, plan)]
            )  # fmt: skip
    chains = [f"following {CHAINS[chain].title}" for chain in OF_THE_EXAMPLE]
    return table(("Plan", "Settings", *chains, "all else", "a day", "of the plan", "it lasts"), rows)


def solana_table(counted: Counted) -> str:
    """What Solana costs at Helius."""
    rows: list[list[str]] = []
    for members in (*MEMBERS[:2], EXAMPLE, MEMBERS[2]):
        looks = ceil(members / BATCH)
        once = HELIUS.cost(times(counted.solana[members], looks))
        rows.append([f"{members:,}", number(once), f"{number(24 * once)} ({share(24 * once, HELIUS)})"])
    return table(("Members", "credits a sweep", "a sweep every hour, a day"), rows)


def solana_following_table(counted: Counted) -> str:
    """What following Solana costs at Helius by the setting."""
    rows: list[list[str]] = []
    for requests in (60, 10, 1, 0):
        value = solana_following(counted, HELIUS, requests)
        rows.append(
            [f"`{requests}`", number(value), *(share(value, plan) for plan in SOLANA), lasts(value, HELIUS)]
        )  # fmt: skip
    names = (f"of {plan.title}" for plan in SOLANA)
    return table(("`SOLANA_FOLLOW_REQUESTS`", "credits a day", *names, "the free plan lasts"), rows)


def looks_at_a_bio(seconds: float) -> int:
    """How many reads a proof takes whose bio shows the code so many seconds after the code was shown."""
    looks, passed, count = bio_schedule.shown(), 0.0, 0
    while looks.next_in is not None and passed < seconds:
        passed += looks.next_in
        count += 1
        looks = looks.after()
    return count


def marketplaces_table(_: Counted) -> str:
    """What proofs and rules read from OpenSea, and from Alchemy's lists."""
    rows: list[list[str]] = []
    for members in sorted({*MEMBERS, EXAMPLE}):
        proofs = members / 1_000 * LIFE["proofs"]
        rows.append(
            [
                f"{members:,}",
                *(number(proofs * looks_at_a_bio(seconds)) for seconds in (SOON_IN_THE_BIO, DAY)),
                number(members),
                number(ceil(members / TOKENS_A_BATCH)),
                number(members * ALCHEMY_LIST),
            ]
        )
    rows.append(["a free key reads, a day", *[number(24 * OPENSEA_READS_AN_HOUR)] * 4, "—"])
    head = (
        "Members", "bios, code there after 2 minutes", "bios, code never there", "any NFT, a sweep and chain",
        "traits, a sweep", "any NFT in Alchemy's lists, CU a sweep and chain",
    )  # fmt: skip
    return table(head, rows)


TABLES: dict[str, Callable[[Counted], str]] = {
    "plans": plans_table,
    "example": example_table,
    "public": following_table(replace(PUBLIC, unit="Requests")),
    **{plan.key: following_table(plan) for plan in FREE},
    "rounds": rounds_table,
    "fallbacks": fallbacks_table,
    "events": events_table,
    "expensive": expensive_table,
    "totals": totals_table,
    "paid": paid_table,
    "solana": solana_table,
    "solana-following": solana_following_table,
    "marketplaces": marketplaces_table,
}
_PLACE = "<!-- benchmarks/costs.py: {} -->\n"


def filled(page: str, counted: Counted) -> str:
    """The page with its tables as they are counted now."""
    for name, made in TABLES.items():
        place = _PLACE.format(name)
        assert place in page, f"the page has no place for the table {name!r}"
        page = re.sub(re.escape(place) + r"(?:\|.*\n)*", f"{place}{made(counted)}\n", page)
    return page


def main() -> int:
    """Count, and print or write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.costs", description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the tables into docs/first-contact.md")
    given = parser.parse_args()
    counted = asyncio.run(count())
    if given.write:
        PAGE.write_text(filled(PAGE.read_text(), counted))
    else:
        for name, made in TABLES.items():
            print(f"\n{name}\n\n{made(counted)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
