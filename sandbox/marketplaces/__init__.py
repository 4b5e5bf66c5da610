"""OpenSea and Magic Eden: their APIs, profile pages, and the control calls that set an account."""

from typing import Any

from aiohttp import web

from sandbox.base.body import fields
from sandbox.base.budget import Budget
from sandbox.base.refusal import Refusal
from sandbox.base.sandbox import Sandbox
from sandbox.chains import Chains
from sandbox.marketplaces.accounts import Account, Accounts
from sandbox.marketplaces.alchemy import Alchemy
from sandbox.marketplaces.catalogue import Catalogue
from sandbox.marketplaces.magiceden import MagicEden
from sandbox.marketplaces.opensea import OpenSea
from sandbox.marketplaces.pages import CollectionPages
from sandbox.marketplaces.plans import LIMITS
from sandbox.marketplaces.profile import Profiles
from sandbox.solana import Solana

PLACES = {"opensea": "OpenSea", "magiceden": "Magic Eden"}


class Marketplaces:
    """Two marketplaces with separate accounts over the same chains."""

    def __init__(self, sandbox: Sandbox, chains: Chains | None, solana: Solana | None) -> None:
        self.sandbox = sandbox
        self.catalogue = Catalogue(sandbox, chains, solana)
        folder = sandbox.data / "marketplaces"
        self.accounts = {place: Accounts(folder / f"{place}.jsonl", sandbox.people) for place in PLACES}
        self.budgets: dict[str, Budget] = self._full()
        """How much each provider still answers, where it has a limit."""

    def _full(self) -> dict[str, Budget]:
        return {place: Budget(*limit) for place, limit in LIMITS.items()} if self.sandbox.strict else {}

    def limits(self) -> dict[str, Any]:
        """Return the marketplaces' part of GET /control/limits."""
        return {place: budget.view() for place, budget in self.budgets.items()}

    def renew_limits(self) -> None:
        """Start full windows, or none where the sandbox is not strict."""
        self.budgets.clear()
        self.budgets.update(self._full())

    def set_limit(self, place: str, left: int, seconds: float) -> None:
        """Give a marketplace a window with so many requests left, strict or not, until `renew_limits`."""
        self.budgets.setdefault(place, Budget(*LIMITS[place])).set(left, seconds)

    async def start(self) -> None:
        """Read the accounts."""
        for accounts in self.accounts.values():
            accounts.open()

    async def stop(self) -> None:
        """Close the journals."""
        for accounts in self.accounts.values():
            accounts.close()

    async def reset(self) -> None:
        """Restore the usernames of the start, and empty the bios."""
        for accounts in self.accounts.values():
            accounts.reset()
        self.renew_limits()

    async def world(self) -> dict[str, Any]:
        """Return the `accounts` of GET /control/world: EVM addresses as at OpenSea, Solana's as at Magic Eden."""
        shown: dict[str, Any] = {}
        for place, accounts in reversed(self.accounts.items()):
            for account in accounts.known():
                if account.address not in shown or (place == "opensea" and account.address.startswith("0x")):
                    shown[account.address] = _account(account)
        return shown

    def routes(self) -> list[web.RouteDef]:
        """Return all routes, those of the APIs first: a profile page's path would swallow them."""
        pages = [
            route
            for place, title in PLACES.items()
            for route in Profiles(place, title, self.accounts[place], self.catalogue).routes()
        ]
        return [
            *OpenSea(self.sandbox, self.accounts["opensea"], self.catalogue, self.budgets).routes(),
            *MagicEden(self.sandbox, self.accounts["magiceden"], self.catalogue, self.budgets).routes(),
            *Alchemy(self.sandbox, self.catalogue, self.budgets).routes(),
            *CollectionPages(self.catalogue).routes(),
            *[self._control(place) for place in PLACES],
            *pages,
        ]

    def _control(self, place: str) -> web.RouteDef:
        async def change(request: web.Request) -> web.Response:
            body = await fields(request)
            given = {name: body.get(name) for name in ("bio", "username", "ens_name", "linked_to")}
            for name, value in given.items():
                if not isinstance(value, str | None):
                    raise Refusal(400, f"{name} is text.")
            account = self.accounts[place].change(request.match_info["address"], **given)
            return web.json_response({"address": account.address, **_account(account)})

        return web.put(f"/control/{place}/accounts/{{address}}", change)


def _account(account: Account) -> dict[str, Any]:
    """Return an account as the control calls show it."""
    shown = {"username": account.username, "bio": account.bio}
    return {**shown, **({"linked_to": account.linked_to} if account.linked_to else {})}
