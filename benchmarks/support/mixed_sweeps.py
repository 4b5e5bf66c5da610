"""Whole sweeps with ten rules of mixed conditions: `python -m benchmarks.support.mixed_sweeps [--quick] [--members N]`.

Calls to the node are counted for all ten rules together, and for each kind with the other rules paused. Nothing changes
in the rounds that are measured. Traits were read before, and are fresh. Coins on Solana are counted with the product's
own reader at a node that answers in this process.
"""

import asyncio
import sys
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.sizes.sweep_process import Counts, one_round
from benchmarks.support import community
from benchmarks.support.call_counts import Answer, Calls, counting, index, solana_owner
from benchmarks.support.nft_chain import CHAIN, NOBODY, NftChain, holder, nft_chain, wallet
from benchmarks.support.rounds import Measured, goal, options
from gateways.chains.balance_sheet import NATIVE, Segment
from gateways.chains.metadata_traits import Trait
from gateways.chains.read_point import ReadPoint
from gateways.solana.client import SolanaChains
from gateways.solana.node import SolanaNodes
from gateways.solana.token_accounts import TOKEN_PROGRAMS
from gateways.transport.base58 import decode
from gateways.transport.errors import ProviderRefused
from jobs.reconciler import BATCH
from models import now, transaction
from services.collections import stored_traits
from services.collections.trait_match import TokenTraits
from services.collections.trait_sources import FROM_METADATA
from services.rules.types import address_list_text, stored_address_lists

MIXED, TRAIT = "mixed conditions", "trait"
HOLDERS, COLLECTIONS, SUPPLY, QUICK_SUPPLY = 10_000, 5, 10_000, 2_000
TOKENS_OF = 2
"""The place of the collection that is read token by token."""
COINS, DECIMALS = 2, 6
RICH, LISTED = 1_000, 20_000
"""Wallets with the chain's own coin, and addresses on the list."""
MOST_OF_TOKENS, MOST_OF_CALLS = 0.3, 1.0
"""Calls for 1,000 checks; a check is one condition about one member."""
Tree = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """The content of the chain: collections, coins, and a contract in which tokens are staked."""

    collections: Sequence[str]
    coins: Sequence[str]
    staking: str


@dataclass(frozen=True, slots=True)
class Row:
    """One measured sweep: the rules that decided, their number of conditions, and the cost."""

    name: str
    conditions: int
    seconds: float
    cpu: float
    requests: int
    calls: Calls

    def per_thousand(self, members: int) -> float:
        """Return calls for 1,000 checks."""
        return sum(self.calls.values()) / (members * self.conditions) * 1000


def main(arguments: Sequence[str] = ()) -> None:
    """Measure and print."""
    parser = options("support.mixed_sweeps", __doc__, quick="fewer members and tokens")
    parser.add_argument("--members", type=int)
    given = parser.parse_args(arguments)
    members = given.members or (5_000 if given.quick else 100_000)
    supply = QUICK_SUPPLY if given.quick else SUPPLY
    with nft_chain() as node:
        print("Minting the collections and coins ...", file=sys.stderr)
        place = fill(node, supply)
        with community.database() as url, node.mining():
            rows = asyncio.run(rounds(url, node, place, members, supply))
    show(rows, members)
    show_solana()


def fill(node: NftChain, supply: int) -> Place:
    """Collections, coins and stakes among the first HOLDERS wallets."""
    owners = [wallet(number) for number in range(HOLDERS)]
    keeper = node.rpc("eth_accounts")[0]
    coins = [
        node.create("Coin", ["string", "string", "bool", "uint256", "address"],
                    [f"Coin {number}", f"C{number}", True, DECIMALS, keeper])
        for number in range(COINS)
    ]  # fmt: skip
    for coin in coins:
        node.settle(coin, [(NOBODY, owner, 0, (at % 200) * 10**DECIMALS) for at, owner in enumerate(owners) if at % 3])
    staking = node.create("StakingNumber", ["string", "address"], ["Stakes", keeper])
    node.settle(staking, [(NOBODY, owner, at + 1, 1) for at, owner in enumerate(owners[: HOLDERS // 4])])
    for owner in owners[:RICH]:
        node.rpc("anvil_setBalance", owner, hex(10**18))
    node.fill(HOLDERS, collections=COLLECTIONS, supply=supply)
    return Place(node.contracts, coins, staking)


def rules(place: Place, listed: Mapping[str, Any]) -> dict[str, list[Tree]]:
    """Return ten rules by kind."""
    first, second, third, fourth, fifth = place.collections

    def on(kind: str, contract: str, **more: Any) -> Tree:
        return {"type": kind, "chain": CHAIN, "contract": contract, **more}

    def coin(contract: str, decimals: int = DECIMALS, **bounds: str) -> Tree:
        return on("token", contract, decimals=decimals, **bounds)

    staked = {"function": "staked(address) view returns (uint256)", "args": ["{wallet}"]}
    a_list = {"type": "address_list", **listed}
    return {
        "number of tokens": [on("basic", first, minTokens=1)],
        "maximum of tokens": [on("basic", second, minTokens=1, maxTokens=3)],
        "token IDs": [on("token_id", third, tokenIds=["1-500", "900"])],
        TRAIT: [on("trait", third, trait={"type": "Fur", "value": "Gold"}, minTokens=1)],
        "coin": [coin(place.coins[0], min="99.5")],
        "the chain's own coin": [coin("native", 18, min="0.5")],
        "view call": [on("call", place.staking, **staked, compare=">=", value="1")],
        "address list": [a_list],
        "combined": [
            {"any": [on("basic", fourth, minTokens=2), coin(place.coins[1], min="50", max="150")]},
            {"all": [on("basic", fifth, minTokens=1), {"not": a_list}]},
        ],
    }


async def rounds(url: str, node: NftChain, place: Place, members: int, supply: int) -> list[Row]:
    """Run one sweep with all rules and one for each kind, once everybody has their roles."""
    async with community.product(url, [node.url]):
        (server,) = await community.people(members)
        ids = await _write_rules(server, place, supply)
        every = [rule for listed in ids.values() for rule, _ in listed]
        print(f"Settling {members:,} members ...", file=sys.stderr)
        # Traits are known of tokens whose holders are: no marketplace is asked for them.
        await _only([rule for name, listed in ids.items() for rule, _ in listed if name != TRAIT])
        await one_round()
        await _only(every)
        await one_round()
        await community.written()
        await one_round()
        counts = Counts()
        await counts.begin()
        found: list[Row] = []
        conditions = {name: sum(leaves for _, leaves in listed) for name, listed in ids.items()}
        for name, chosen, leaves in (
            ("all ten", every, sum(conditions.values())),
            *((name, [rule for rule, _ in listed], conditions[name]) for name, listed in ids.items()),
        ):
            await _only(chosen)
            found.append(await _measured(name, leaves, counts, members))
            print(f"  {name}: {found[-1].seconds:.1f} s, {sum(found[-1].calls.values())} calls", file=sys.stderr)
        return found


async def _measured(name: str, conditions: int, counts: Counts, members: int) -> Row:
    counts.requests = 0
    with counting() as calls, Measured() as time:
        assert await one_round() == members
    left = await community.due()
    assert left == 0, f"{name}: {left} members could not be answered"
    del calls["batch"]
    return Row(name, conditions, time.seconds, time.cpu, counts.requests, calls)


async def _only(chosen: Sequence[int]) -> None:
    """Pause all other rules."""
    async with transaction() as db:
        await db.execute(
            "UPDATE rule SET state = CASE WHEN id = ANY(:ids) THEN 'active' ELSE 'paused' END", {"ids": list(chosen)}
        )


async def _write_rules(server: int, place: Place, supply: int) -> dict[str, list[tuple[int, int]]]:
    """Write the rules, the list and the traits; return each rule's id and number of conditions by kind."""
    read = await address_list_text.of_items([wallet(number) for number in range(0, 2 * LISTED, 2)])
    ids = dict[str, list[tuple[int, int]]]()
    async with transaction() as db:
        await stored_address_lists.keep(db, server, [read])
        made = [
            (name, tree)
            for name, trees in rules(place, {"list": read.digest, "count": read.count}).items()
            for tree in trees
        ]
        rows = [
            community.rule_row(server, place.collections[0], str(community.ROLE + at), tree)
            for at, (_, tree) in enumerate(made)
        ]
        await community.add_rules(db, rows)
        stored = (await db.execute("SELECT id FROM rule ORDER BY id")).scalars().all()
        for (name, tree), rule in zip(made, stored, strict=True):
            ids.setdefault(name, []).append((int(rule), _leaves(tree)))
        gold, plain, read_at = (Trait("Fur", "Gold"),), (Trait("Fur", "Gray"),), now()
        await stored_traits.remember(
            db,
            {
                (CHAIN, place.collections[TOKENS_OF], str(token + 1)): TokenTraits(
                    gold if holder(TOKENS_OF, token, HOLDERS) % 2 else plain, FROM_METADATA, read_at, whole=True
                )
                for token in range(supply)
            },
        )
    return ids


def _leaves(tree: Tree) -> int:
    if "not" in tree:
        return _leaves(tree["not"])
    branches = tree.get("all") or tree.get("any")
    return sum(map(_leaves, branches)) if branches else 1


def solana_node(scans: bool) -> Answer:
    """A node where everybody has one of the first coin, which answers at once. With `scans` it gives whole coins."""
    rest, owners = index(1, 1), [solana_owner(number) for number in range(BATCH)]
    amounts = [(decode(owner) or b"") + (1).to_bytes(8, "little") for owner in owners]

    def account(data: bytes) -> dict[str, Any]:
        return {"owner": TOKEN_PROGRAMS[0], "lamports": 1, "data": [b64encode(data).decode(), "base64"]}

    def answer(method: str, params: list[Any] | dict[str, Any]) -> object:
        context = {"context": {"slot": 300_000_000}}
        if method == "getMultipleAccounts":
            assert isinstance(params, list)
            return {**context, "value": [account(BATCH.to_bytes(8, "little")) for _ in params[0]]}
        if method == "getProgramAccounts":
            if not scans:
                raise ProviderRefused("Solana", "it is excluded from the indexes", status=200)
            return {**context, "value": [{"account": account(one)} for one in amounts]}
        if method == "getTokenAccountsByOwner":
            assert isinstance(params, list)
            info = {"mint": MINTS[0], "owner": params[0], "tokenAmount": {"amount": "1"}}
            return {**context, "value": [{"account": {"data": {"parsed": {"info": info}}}}]}
        return rest(method, params)

    return answer


MINTS = [solana_owner(at) for at in range(10**9, 10**9 + 3)]
"""Addresses of three coins."""


async def solana_calls(coins: Sequence[str], *, scans: bool) -> list[Calls]:
    """Return the calls of two questions, one after the other, about coins of BATCH wallets on Solana."""
    found: list[Calls] = []
    with counting(solana_node(scans)) as calls:
        nodes = SolanaNodes(["http://node.test"], deadline=120.0)
        chains = SolanaChains(nodes)
        await chains.head("solana")
        owners = tuple(solana_owner(number) for number in range(BATCH))
        segment = Segment(tuple(coins), owners, frozenset(coins))
        for _ in range(2):
            calls.clear()
            (sheet,) = await chains.balances("solana", [segment], at=ReadPoint())
            assert all(sheet.unknown(coin) == 0 for coin in coins), "the wallets were not read"
            found.append(Calls(calls))
        await nodes.close()
    return found


def show_solana() -> None:
    """Print what a batch of a sweep costs in coins on Solana, and the batch after it."""
    print(f"\nCoins on Solana, {BATCH:,} wallets at a time\n")
    print("| coins | node | calls | for 1,000 checks | the next batch, for 1,000 checks |\n|---|---|---|---|---|")
    for name, coins in (("SOL", [NATIVE]), ("one", MINTS[:1]), ("two", MINTS[:2]), ("three", MINTS)):
        for kind, scans in (("gives whole coins", True), ("refuses them", False)):
            if coins == [NATIVE] and not scans:
                continue
            calls, later = asyncio.run(solana_calls(coins, scans=scans))
            listed = ", ".join(f"{count} {method}" for method, count in calls.most_common())
            each, next_one = (sum(one.values()) / BATCH / len(coins) * 1000 for one in (calls, later))
            print(f"| {name} | {kind} | {listed} | {each:,.2f} | {next_one:,.2f} |")


def show(rows: Sequence[Row], members: int) -> None:
    """Print the table and the goals."""
    print(f"\nThe whole sweep, {members:,} members, mixed conditions, nothing changed\n")
    print("| rules | conditions | seconds | our processor time a member, µs | requests | calls | for 1,000 checks |")
    print("|---|---|---|---|---|---|---|")
    for row in rows:
        calls = ", ".join(f"{count} {method}" for method, count in row.calls.most_common()) or "none"
        print(
            f"| {row.name} | {row.conditions} | {row.seconds:.1f} | {row.cpu / members * 1e6:.0f} | {row.requests} "
            f"| {calls} | {row.per_thousand(members):.3f} |"
        )
    print()
    for row in rows:
        most = MOST_OF_CALLS if row.name == "view call" else MOST_OF_TOKENS
        goal(MIXED, f"{row.name}: calls per 1,000 checks", row.per_thousand(members), most=most)


if __name__ == "__main__":
    main(sys.argv[1:])
