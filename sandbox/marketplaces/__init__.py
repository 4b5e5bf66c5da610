"""OpenSea and Magic Eden: their APIs, profile pages, and the control calls that set an account."""

from typing import TYPE_CHECKING, Any

from aiohttp import web

from sandbox.control.body import fields
from sandbox.marketplaces.accounts import Accounts
from sandbox.marketplaces.alchemy import Alchemy
from sandbox.marketplaces.catalogue import Catalogue
from sandbox.marketplaces.magiceden import MagicEden
from sandbox.marketplaces.opensea import OpenSea
from sandbox.marketplaces.pages import CollectionPages
from sandbox.marketplaces.profile import Profiles
from sandbox.refusal import Refusal

if TYPE_CHECKING:
    from sandbox.house import Sandbox

PLACES = {"opensea": "OpenSea", "magiceden": "Magic Eden"}


class Marketplaces:
    """Two marketplaces with separate accounts over the same chains."""

    def __init__(self, sandbox: "Sandbox") -> None:
        self.sandbox = sandbox
        self.catalogue = Catalogue(sandbox)
        folder = sandbox.data / "marketplaces"
        self.accounts = {place: Accounts(folder / f"{place}.jsonl", sandbox.people) for place in PLACES}

    async def start(self) -> None:
        """Read the accounts."""
        for accounts in self.accounts.values():
            accounts.open()

    async def stop(self) -> None:
        """Give the journals back."""
        for accounts in self.accounts.values():
            accounts.close()

    async def reset(self) -> None:
        """Usernames as at the start, bios empty."""
        for accounts in self.accounts.values():
            accounts.reset()

    async def world(self) -> dict[str, Any]:
        """The `accounts` of GET /control/world: EVM addresses as OpenSea has them, Solana's as Magic Eden has them."""
        shown: dict[str, Any] = {}
        for place, accounts in reversed(self.accounts.items()):
            for account in accounts.known():
                if account.address not in shown or (place == "opensea" and account.address.startswith("0x")):
                    shown[account.address] = {"username": account.username, "bio": account.bio}
        return shown

    def routes(self) -> list[web.RouteDef]:
        """APIs first: a profile page's path would swallow them."""
        pages = [
            route
            for place, title in PLACES.items()
            for route in Profiles(place, title, self.accounts[place], self.catalogue).routes()
        ]
        return [
            *OpenSea(self.sandbox, self.accounts["opensea"], self.catalogue).routes(),
            *MagicEden(self.sandbox, self.accounts["magiceden"], self.catalogue).routes(),
            *Alchemy(self.sandbox, self.catalogue).routes(),
            *CollectionPages(self.catalogue).routes(),
            *[self._control(place) for place in PLACES],
            *pages,
        ]

    def _control(self, place: str) -> web.RouteDef:
        async def change(request: web.Request) -> web.Response:
            body = await fields(request)
            for name in ("bio", "username"):
                if not isinstance(body.get(name, ""), str | None):
                    raise Refusal(400, f"{name} is text.")
            account = self.accounts[place].change(request.match_info["address"], body.get("bio"), body.get("username"))
            return web.json_response({"address": account.address, "username": account.username, "bio": account.bio})

        return web.put(f"/control/{place}/accounts/{{address}}", change)
