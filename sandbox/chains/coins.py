"""ERC-20 coins: the facts about each, and moving their amounts; every chain begins with those of `seeds.COINS`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from sandbox.base.body import Body
from sandbox.base.chain_table import KEEPER, Facts
from sandbox.base.people import person
from sandbox.base.refusal import Refusal
from sandbox.chains import abi
from sandbox.chains.seeds import COINS, created

STANDARD = "ERC20"
CONTRACT = "Coin"
USUAL_DECIMALS = 18
LIE = 255
"""The answer to decimals() of a coin that was deployed with the decimals "lies"."""
_NOTHING = ("", "none", "nothing", "null")
_LIES = ("lie", "lies", "lying")


@dataclass(frozen=True)
class Coin:
    """A coin that the world lists. `decimals` is its answer to decimals(), None for an empty answer."""

    contract: str
    name: str
    symbol: str
    slug: str
    decimals: int | None
    rebases: bool = False
    seeded: bool = False

    def entry(self, holders: Mapping[str, int]) -> dict[str, Any]:
        """Return the coin's entry among a chain's collections in GET /control/world: holders instead of tokens."""
        return {
            "contract": self.contract,
            "name": self.name,
            "slug": self.slug,
            "standard": STANDARD,
            "symbol": self.symbol,
            "decimals": self.decimals,
            "rebases": self.rebases,
            "tokens": [],
            "holders": {holder: str(amount) for holder, amount in holders.items()},
        }


def deployer(facts: Facts) -> str:
    """Return the account that deploys the chain's coins, beginning with those at the start."""
    return "0x" + sha256(f"sandbox coin deployer on {facts.name}".encode()).hexdigest()[:40]


def seeded_coins(facts: Facts) -> dict[str, Coin]:
    """Return contract → coin, as on a fresh chain."""
    listed: dict[str, Coin] = {}
    for nonce, (name, symbol, slug, decimals, rebases, _) in enumerate(COINS):
        address = created(deployer(facts), nonce)
        listed[address] = Coin(address, name, symbol, slug, decimals, rebases, seeded=True)
    return listed


def seeded_amounts(coin: Coin) -> dict[str, int]:
    """Return lower-case address → base units at the start; empty for a coin that was deployed later."""
    for _, _, slug, decimals, _, holders in COINS:
        if coin.seeded and slug == coin.slug:
            return {person(name).wallets.evm.lower(): amount * 10**decimals for name, amount in holders.items()}
    return {}


def deployment(name: str, symbol: str, decimals: int | None) -> str:
    """Return the data that deploys a coin with this answer to decimals(); None means an empty answer."""
    tails = [abi.text(name), abi.text(symbol)]
    offsets = [5 * 32, 5 * 32 + len(tails[0]) // 2]
    heads = [*offsets, int(decimals is not None), decimals or 0, KEEPER]
    return abi.ARTEFACTS[CONTRACT]["bytecode"] + "".join(map(abi.word, heads)) + "".join(tails)


def holdings_of(answer: str) -> dict[str, int]:
    """Return the answer of `holdings()` as lower-case address → base units, without zeros."""
    data = abi.words(answer)
    who, amounts = abi.list_at(data, 0), abi.list_at(data, 1)
    return {f"0x{holder:040x}": amount for holder, amount in zip(who, amounts, strict=True) if amount}


def settling(now: Mapping[str, int], wanted: Mapping[str, int]) -> str:
    """Return the call data that changes the amounts `now` into the `wanted` ones."""
    taken = [
        (holder, abi.NOBODY, 0, amount - wanted.get(holder, 0))
        for holder, amount in now.items()
        if amount > wanted.get(holder, 0)
    ]
    given = [
        (abi.NOBODY, holder, 0, amount - now.get(holder, 0))
        for holder, amount in wanted.items()
        if amount > now.get(holder, 0)
    ]
    return abi.settlement([*taken, *given])


def decimals_in(body: Body) -> int | None:
    """Return the decimals for a new coin: a number of at most 256 bits, or None (null or "nothing"). Raises Refusal."""
    if "decimals" not in body:
        return USUAL_DECIMALS
    given = body["decimals"]
    said = "" if given is None else str(given).lower()
    if said in _NOTHING:
        return None
    if said in _LIES:
        return LIE
    if isinstance(given, bool) or not re.fullmatch(r"[0-9]{1,78}", said) or int(said) >= abi.UINT256:
        raise Refusal(400, "decimals is a number of at most 256 bits; null for a coin that says nothing.")
    return int(said)


def moving(sender: str | None, to: str | None, amount: int) -> str:
    """Return the call data that moves an amount. Without a sender it is minted, without a receiver burnt."""
    if sender is None:
        return abi.call(CONTRACT, "mint(address,uint256)", to or abi.NOBODY, amount)
    if to is None:
        return abi.call(CONTRACT, "burn(address,uint256)", sender, amount)
    return abi.call(CONTRACT, "transfer(address,uint256)", to, amount)
