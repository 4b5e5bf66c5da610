"""SPL coins of both token programs: the one that exists at the start, token accounts, and moving amounts."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from typing import Any

from sandbox.base.people import base58, person
from sandbox.solana.keys import address_of

TOKEN = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA"
TOKEN_2022 = "TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb"
PROGRAMS = {"SPL": TOKEN, "SPL2022": TOKEN_2022}
"""Standard → token program."""
STANDARDS = tuple(PROGRAMS)
USUAL_DECIMALS = 9
MOST_DECIMALS = 255
MOST_UNITS = 2**64 - 1
"""The most base units that a token account can hold."""
ACCOUNT_RENT, MINT_RENT = 2_039_280, 1_461_600

NAME, SYMBOL, SLUG, DECIMALS = "Reef Dollar", "REEF", "reef-dollar", 6
HOLDINGS = {"carol": 1_000, "dave": 250, "erin": 20}
"""Whole coins at the start."""


@dataclass
class SplCoin:
    """A coin and what everybody has of it. An account stays when its amount is 0, as token accounts do."""

    contract: str
    name: str
    symbol: str
    slug: str
    standard: str
    decimals: int
    accounts: dict[str, int] = field(default_factory=dict)

    @property
    def program(self) -> str:
        """The token program that it belongs to."""
        return PROGRAMS[self.standard]

    @property
    def supply(self) -> int:
        """The total supply in base units."""
        return sum(self.accounts.values())

    def entry(self) -> dict[str, Any]:
        """Return the coin's entry among the collections in GET /control/world: holders instead of tokens."""
        return {
            "contract": self.contract,
            "name": self.name,
            "slug": self.slug,
            "standard": self.standard,
            "symbol": self.symbol,
            "decimals": self.decimals,
            "tokens": [],
            "holders": {owner: str(amount) for owner, amount in self.accounts.items() if amount},
        }

    def change(self, changes: Mapping[str, int]) -> None:
        """Add the changes to what owners have; a negative change takes away."""
        for owner, change in changes.items():
            self.accounts[owner] = self.accounts.get(owner, 0) + change


def seeded() -> dict[str, SplCoin]:
    """Return mint → coin at the start."""
    contract = address_of(f"coin {SLUG}")
    accounts = {person(name).wallets.solana: whole * 10**DECIMALS for name, whole in HOLDINGS.items()}
    return {contract: SplCoin(contract, NAME, SYMBOL, SLUG, "SPL", DECIMALS, accounts)}


def decimals_in(given: object) -> int | None:
    """Return the decimals that a body names, USUAL_DECIMALS if none; None for what is not a number of 8 bits."""
    if given is None:
        return USUAL_DECIMALS
    said = str(given)
    return int(said) if re.fullmatch(r"[0-9]{1,3}", said) and int(said) <= MOST_DECIMALS else None


@lru_cache(maxsize=100_000)
def account_of(owner: str, mint: str) -> str:
    """Return the address of an owner's token account."""
    return base58(sha256(f"{owner} {mint}".encode()).digest())


def token_account(coin: SplCoin, owner: str, *, frozen: bool = False, delegate: str | None = None) -> dict[str, Any]:
    """Return an owner's token account as jsonParsed."""
    state, amount = "frozen" if frozen else "initialized", token_amount(coin, coin.accounts[owner])
    info = {"isNative": False, "mint": coin.contract, "owner": owner, "state": state, "tokenAmount": amount}
    if delegate:
        info |= {"delegate": delegate, "delegatedAmount": amount}
    return _parsed(coin, "account", info, ACCOUNT_RENT)


def mint_account(coin: SplCoin, authority: str) -> dict[str, Any]:
    """Return a coin's mint as jsonParsed."""
    info = {"decimals": coin.decimals, "freezeAuthority": None, "isInitialized": True, "mintAuthority": authority}
    return _parsed(coin, "mint", {**info, "supply": str(coin.supply)}, MINT_RENT)


def token_amount(coin: SplCoin, units: int) -> dict[str, Any]:
    """Return an amount in all the forms that nodes give."""
    digits = str(units).rjust(coin.decimals + 1, "0")
    whole = f"{digits[: len(digits) - coin.decimals]}.{digits[len(digits) - coin.decimals :]}"
    shown = whole.rstrip("0").rstrip(".") if coin.decimals else digits
    ui = units / 10**coin.decimals
    return {"amount": str(units), "decimals": coin.decimals, "uiAmount": ui, "uiAmountString": shown}


def _parsed(coin: SplCoin, kind: str, info: dict[str, Any], lamports: int) -> dict[str, Any]:
    program = "spl-token" if coin.program == TOKEN else "spl-token-2022"
    account = 165 if coin.program == TOKEN else 170
    space = account if kind == "account" else 82
    data = {"program": program, "parsed": {"info": info, "type": kind}, "space": space}
    return {
        "data": data,
        "executable": False,
        "lamports": lamports,
        "owner": coin.program,
        "rentEpoch": 2**64 - 1,
        "space": data["space"],
    }
