"""The daily cost of a server at its providers: the tables of docs/first-contact.md.

`python -m benchmarks.costs` prints them, `--write` puts them into the page. The calls are counted
(`benchmarks/support/call_counts.py`) while the product's own readers work, so a changed reader changes the
tables; the prices are in `gateways/provider_plans.py`.
"""

import argparse
import asyncio
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from math import ceil

from benchmarks.support.call_counts import DAY
from benchmarks.support.nft_chain import ROOT
from benchmarks.support.spending import (
    COLLECTIONS,
    COUNTED_MEMBERS,
    DAILY_EVENTS,
    DEFAULT,
    EVM,
    EXAMPLE,
    MEMBERS,
    OF_THE_EXAMPLE,
    OFTEN,
    OPEN_SECONDS,
    PACES,
    QUICK,
    Counted,
    a_day,
    added,
    count,
    in_turns,
    lasts,
    number,
    setups,
    share,
    solana_following,
    solana_pass,
    solana_sweep,
    spent,
    table,
    times,
)
from gateways.chains.catalogue import CHAINS
from gateways.evm.balances.fallbacks import AGGREGATE_CHECKS
from gateways.marketplaces.opensea import TOKENS_A_BATCH
from gateways.provider_plans import (
    ALCHEMY,
    ALCHEMY_LIST,
    FREE,
    HELIUS,
    INFURA,
    OPENSEA_READS_AN_HOUR,
    PAID,
    PUBLIC,
    SOLANA,
    Plan,
)
from services.wallets import bio_schedule
from services.wallets.open_challenges import SLOWLY
from settings import Settings

PAGE = ROOT / "docs" / "first-contact.md"
TOGETHER = (ALCHEMY, INFURA)
"""Two plans whose nodes serve the same chains."""
READ_IN = (EXAMPLE, MEMBERS[-1])
"""Numbers of members for which the page states the time that following Solana takes."""
SOON_IN_THE_BIO = 120
"""Seconds after which most people have saved the code in their bio."""


def plans_table(_: Counted) -> str:
    """Return the table of plans and their allowances."""
    rows = [
        [
            f"[{plan.title}]({plan.page})", plan.price,
            "—" if plan.allowance is None
            else f"{number(plan.allowance)} {plan.unit} a {'day' if plan.days == 1 else 'month'}",
            plan.a_second,
            "—" if plan in SOLANA else "all" if plan.log_blocks is None else f"{plan.log_blocks:,}",
        ]
        for plan in (*FREE, *PAID, *SOLANA)
    ]  # fmt: skip
    return table(("Plan", "Price", "Allowance", "A second", "Blocks of logs a request"), rows)


def following_table(plan: Plan) -> Callable[[Counted], str]:
    """Return a table of the daily cost of following each chain at one plan."""

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


_SWEEP = ("eth_getBlockByNumber", "eth_call")
_NAMES = {plan.key: plan.title.split()[0] for plan in FREE}
_UNITS = [f"{plan.unit}, {_NAMES[plan.key]}" for plan in FREE]


def sweeps_table(counted: Counted) -> str:
    """Return what one sweep costs on one chain."""
    rows: list[list[str]] = []
    for members in COUNTED_MEMBERS:
        calls = counted.sweeps[members]
        once = [plan.cost(calls) for plan in FREE]
        often = [share(value * DAY / OFTEN, plan) for value, plan in zip(once, FREE, strict=True)]
        rows.append([f"{members:,}", *(number(calls[method]) for method in _SWEEP), *map(number, once), *often])
    often_named = (f"{name}, every 10 minutes" for name in _NAMES.values())
    return table(("Members", *(f"`{method}`" for method in _SWEEP), *_UNITS, *often_named), rows)


def fallbacks_table(counted: Counted) -> str:
    """Return the number of `eth_call` requests of a sweep on one chain, by what its node supports."""
    rows = [
        [
            f"{members:,}",
            number(counted.sweeps[members]["eth_call"]),
            f"{ceil(members * COLLECTIONS / AGGREGATE_CHECKS):,}",
            f"{members * COLLECTIONS:,}",
        ]
        for members in COUNTED_MEMBERS
    ]
    return table(("Members", "with state override", "without", "without Multicall3 as well"), rows)


def events_table(counted: Counted) -> str:
    """Return the cost of a member's activity on each chain that the server's rules name."""
    kinds = {
        "a purchase, a re-check, a proof by a bio": counted.look,
        "a sale (two readings)": added(counted.look, counted.confirmation),
        "an open challenge for a transaction, an hour": times(
            counted.challenge, OPEN_SECONDS / SLOWLY.total_seconds()
        ),
        "one that is always open, a day": times(counted.challenge, DAY / SLOWLY.total_seconds()),
    }  # fmt: skip
    rows = [
        [kind, number(sum(calls.values()) - calls.get("batch", 0)), *(number(plan.cost(calls)) for plan in FREE)]
        for kind, calls in kinds.items()
    ]
    return table(("On one chain", "calls", *_UNITS), rows)


def expensive_table(counted: Counted) -> str:
    """Return the cost of rules that read more than balances of collections."""
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
    """Return the daily cost of a server at the free plans, by the settings."""
    rows: list[list[str]] = []
    for plan in FREE:
        for setup in setups(plan):
            values = [a_day(counted, plan, setup, members) for members in MEMBERS]
            rows.append(
                [plan.title, setup.text, *(f"{number(value)} {plan.unit} ({share(value, plan)})" for value in values)]
            )
    return table(("Plan", "Settings", *(f"{members:,} members" for members in MEMBERS)), rows)


def paid_table(counted: Counted) -> str:
    """Return the daily cost of a server at the paid plans with fast following."""
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


def short_table(counted: Counted) -> str:
    """Return the worked example with only the defaults, and a collection on Solana."""
    days = [(plan, a_day(counted, plan, DEFAULT, EXAMPLE)) for plan in FREE]
    requests = Settings.model_fields["solana_follow_requests"].default
    days.append((HELIUS, solana_following(counted, HELIUS, requests) + solana_sweep(counted, HELIUS, EXAMPLE)))
    rows = [
        [plan.title, f"**{number(value)}** {plan.unit}", share(value, plan), lasts(value, plan)] for plan, value in days
    ]
    return table(("Free plan", "a day", "of the plan", "it lasts"), rows)


def example_table(counted: Counted) -> str:
    """Return the worked example."""
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
    shares = [(plan, *in_turns(counted, plan, EXAMPLE, OF_THE_EXAMPLE)) for plan in TOGETHER]
    days = [(sum(halves) + rest, plan) for plan, halves, rest in shares]
    rows.append(
        [
            " and ".join(plan.title for plan in TOGETHER), "the defaults",
            *(" + ".join(number(halves[place]) for _, halves, _ in shares) for place in range(len(OF_THE_EXAMPLE))),
            " + ".join(number(rest) for *_, rest in shares),
            f"**{' + '.join(number(value) for value, _ in days)}**",
            " + ".join(share(*day) for day in days), " + ".join(dict.fromkeys(lasts(*day) for day in days)),
        ]
    )  # fmt: skip
    chains = [f"following {CHAINS[chain].title}" for chain in OF_THE_EXAMPLE]
    return table(("Plan", "Settings", *chains, "all else", "a day", "of the plan", "it lasts"), rows)


def one_chain_table(counted: Counted) -> str:
    """Return the worked example on one chain alone."""
    rows: list[list[str]] = []
    for chain in EVM:
        alone = [(a_day(counted, plan, DEFAULT, EXAMPLE, [chain]), plan) for plan in FREE]
        turns = [(plan, *in_turns(counted, plan, EXAMPLE, [chain])) for plan in TOGETHER]
        both = [(sum(halves) + rest, plan) for plan, halves, rest in turns]
        said = [f"{number(value)} {plan.unit} ({share(value, plan)})" for value, plan in (*alone, *both)]
        rows.append([CHAINS[chain].title, *said[: len(FREE)], " + ".join(said[len(FREE) :])])
    together = " and ".join(plan.title for plan in TOGETHER)
    return table(("Rules on", *(plan.title for plan in FREE), f"{together}, in turns"), rows)


def methods_table(counted: Counted) -> str:
    """Return the calls of the worked example by method, with the cost of each."""
    days = [spent(counted, plan.log_blocks, DEFAULT, EXAMPLE) for plan in FREE]
    named = {"batch": "a batch itself"}
    rows = [
        [
            named.get(method, f"`{method}`"),
            *(number(plan.cost({method: 1})) for plan in FREE),
            *(number(calls[method]) for calls in days),
        ]
        for method in sorted(days[0], key=lambda method: (method == "batch", method))
    ]
    bounds = ("any blocks" if plan.log_blocks is None else f"{plan.log_blocks} blocks" for plan in FREE)
    return table(("Method", *_UNITS, *(f"calls a day, {bound} of logs" for bound in bounds)), rows)


def solana_table(counted: Counted) -> str:
    """Return the cost of Solana at Helius."""
    rows: list[list[str]] = []
    for members in COUNTED_MEMBERS:
        once = solana_sweep(counted, HELIUS, members)
        rows.append([f"{members:,}", number(once), f"{number(24 * once)} ({share(24 * once, HELIUS)})"])
    return table(("Members", "credits a sweep", "a sweep every hour, a day"), rows)


def solana_following_table(counted: Counted) -> str:
    """Return the cost of following Solana at Helius, by the setting."""
    rows: list[list[str]] = []
    for requests in (60, 10, 1, 0):
        value = solana_following(counted, HELIUS, requests)
        shown = [_shown(solana_pass(counted, requests, members)) if requests else "—" for members in READ_IN]
        rows.append(
            [f"`{requests}`", *shown, number(value), *(share(value, plan) for plan in SOLANA), lasts(value, HELIUS)]
        )  # fmt: skip
    names = (f"of {plan.title}" for plan in SOLANA)
    head = ("`SOLANA_FOLLOW_REQUESTS`", *(f"{members:,} members are read in" for members in READ_IN), "credits a day")
    return table((*head, *names, "the free plan lasts"), rows)


def _shown(seconds: float) -> str:
    """Return a time as `20 s`, `16 min` or `6.7 h`."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 2 * 3_600 else f"{seconds / 3_600:.1f} h"


def looks_at_a_bio(seconds: float) -> int:
    """Return how many reads a proof takes if the bio shows the code so many seconds after it was issued."""
    looks, passed, count = bio_schedule.after_showing(), 0.0, 0
    while looks.next_in is not None and passed < seconds:
        passed += looks.next_in
        count += 1
        looks = looks.after()
    return count


def marketplaces_table(_: Counted) -> str:
    """Return the reads of proofs and rules at OpenSea, and from Alchemy's lists."""
    rows: list[list[str]] = []
    for members in COUNTED_MEMBERS:
        proofs = members / 1_000 * DAILY_EVENTS["proofs"]
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
    "short": short_table,
    "example": example_table,
    "one-chain": one_chain_table,
    "methods": methods_table,
    "public": following_table(replace(PUBLIC, unit="Requests")),
    **{plan.key: following_table(plan) for plan in FREE},
    "sweeps": sweeps_table,
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
    """Return the page with its tables as counted now."""
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
