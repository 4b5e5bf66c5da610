"""The rules of a soak, with conditions of every kind, and the changes that admins make."""

from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

from tests.system.soak.expected_roles import SoakRule
from tests.system.soak.world import ELSEWHERE, STANDARDS, World

Tree = dict[str, Any]

GUILDS = 5
EDITED = "Collector"
EDITED_IN = (0, 4)
"""The guilds whose admins change Collector's rule all the time."""
LEAST_COINS = "99.5"
"""Whole coins; `COIN_AMOUNTS` in the world lie around it."""
ID_RANGES = ("2-14", "17", "21-30")
GOLD = {"type": "Fur", "value": "Gold"}


def counted(world: World, chain: str, least: int = 1, most: int | None = None) -> Tree:
    """Return a condition on so many tokens of the world's collection on a chain."""
    tree: Tree = {"type": "basic", "chain": chain, "contract": world.contracts[chain], "minTokens": least}
    return tree if most is None else {**tree, "maxTokens": most}


def certain_ids(world: World) -> Tree:
    """Return a condition on one of certain tokens on ethereum."""
    contract = world.contracts["ethereum"]
    return {"type": "token_id", "chain": "ethereum", "contract": contract, "tokenIds": list(ID_RANGES)}


def golden(world: World) -> Tree:
    """Return a condition on a golden token on base."""
    return {"type": "trait", "chain": "base", "contract": world.contracts["base"], "trait": GOLD, "minTokens": 1}


def anything(world: World) -> Tree:
    """Return a condition on any token on base.

    On ethereum the nodes want an address with each request for logs, and so nobody there can be shown to hold nothing.
    """
    return {"type": "any_nft", "chain": "base", "contract": "any"}


def coins(world: World, chain: str, **bounds: str) -> Tree:
    """Return a condition on the world's coin on a chain: `min`, `max` in whole coins."""
    return {"type": "token", "chain": chain, "contract": world.coins[chain], **bounds}


def staked(world: World, chain: str, least: int = 1) -> Tree:
    """Return a condition on so many staked tokens: on polygon the contract returns a number, on base a list."""
    asked = (
        {"function": "staked(address) view returns (uint256)"}
        if chain == "polygon"
        else {"function": "stakedTokens(address) view returns (uint256[])", "path": "length"}
    )
    call = {"args": ["{wallet}"], "compare": ">=", "value": str(least)}
    return {"type": "call", "chain": chain, "contract": world.staking[chain], **asked, **call}


def listed(world: World, random: Random) -> Tree:
    """Return a condition on a list of wallets: of each person both, one or none."""
    addresses = [ELSEWHERE["evm"]]
    for who in sorted(world.people):
        both = [world.address(who, "base"), world.address(who, "solana")]
        addresses += random.choice([both, both[:1], both[1:], [], []])
    return {"type": "address_list", "addresses": addresses}


def proved(family: str) -> Tree:
    """Return a condition on a verified wallet of the family, whatever it holds."""
    return {"type": "any_wallet", "family": family}


def first_rules(world: World, random: Random) -> list[SoakRule]:
    """Return sixteen rules over fifteen roles of five guilds: for each chain three to be edited, and composed ones.

    The four for the Whales have a condition of every other kind, required and excluded.
    """
    on = {chain: counted(world, chain) for chain in STANDARDS}
    soak_rules: list[tuple[int, str, Tree]] = [
        (0, "Holder", on["base"]),
        (0, "Whale", counted(world, "base", 2)),
        (1, "Holder", on["ethereum"]),
        (1, "Collector", {"all": [on["base"], on["solana"]]}),
        (2, "Holder", on["polygon"]),
        (2, "Collector", {"any": [on["polygon"], on["ethereum"]]}),
        (3, "Holder", on["solana"]),
        (3, "Collector", {"all": [on["base"], {"not": on["polygon"]}]}),
        (3, "Collector", counted(world, "polygon", 2)),
        (0, EDITED, on["solana"]),
        (4, EDITED, {"any": [on["base"], on["solana"]]}),
        (4, "Holder", on["ethereum"]),
        (
            1, "Whale",
            {"any": [
                certain_ids(world),
                {"all": [coins(world, "solana", min=LEAST_COINS), {"not": listed(world, random)}]},
            ]},
        ),
        (
            2, "Whale",
            {"any": [golden(world), {"all": [staked(world, "polygon"), {"not": anything(world)}]}]},
        ),
        (
            3, "Whale",
            {"all": [
                {"any": [coins(world, "base", min=LEAST_COINS), counted(world, "polygon", 1, 2)]},
                {"not": staked(world, "base", 2)},
            ]},
        ),
        (
            4, "Whale",
            {"any": [
                {"all": [listed(world, random), coins(world, "base", max=LEAST_COINS)]},
                {"all": [anything(world), counted(world, "base", 0, 1)]},
                {"all": [on["polygon"], {"not": proved("solana")}]},
            ]},
        ),
    ]  # fmt: skip
    return [SoakRule(world.guilds[number].roles[role], tree) for number, role, tree in soak_rules]


def drawn(world: World, random: Random) -> Tree:
    """Return a condition for a rule that an admin edits: half of the time a token count, otherwise any kind."""
    if random.random() < 0.5:
        return counted(world, random.choice(sorted(STANDARDS)), random.choice([1, 1, 1, 2]))
    tree = random.choice([
        certain_ids(world), golden(world), anything(world), listed(world, random),
        counted(world, random.choice(sorted(STANDARDS)), 1, 1),
        coins(world, random.choice(sorted(world.coins)), min=LEAST_COINS),
        coins(world, random.choice(sorted(world.coins)), max=LEAST_COINS),
        staked(world, random.choice(sorted(world.staking))), proved(random.choice(["evm", "solana"])),
    ])  # fmt: skip
    return {"not": tree} if random.random() < 0.3 else tree


def leaves(tree: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield every condition in a tree."""
    branches = tree.get("all") or tree.get("any") or ([tree["not"]] if "not" in tree else None)
    if branches is None:
        yield tree
    else:
        for branch in branches:
            yield from leaves(branch)


def has_list(soak_rule: SoakRule) -> bool:
    """Return whether a rule names a list of addresses."""
    return any(leaf["type"] == "address_list" for leaf in leaves(soak_rule.tree))


def with_list(tree: Mapping[str, Any], given: Tree) -> Tree:
    """Return the same tree with another list of addresses."""
    if "not" in tree:
        return {"not": with_list(tree["not"], given)}
    for group in ("all", "any"):
        if group in tree:
            return {group: [with_list(branch, given) for branch in tree[group]]}
    return given if tree["type"] == "address_list" else dict(tree)
