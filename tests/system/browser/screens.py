"""Every screen once: its address, its audience, and what shows that it has loaded.

The checks that hold for all screens use this list, and so does `make screenshots`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from playwright.async_api import Page

from app.pages import OPERATOR_PAGES, PUBLIC_PAGES
from tests.support.product import Product

TABS = ("rules", "members", "activity", "health", "channel", "move", "developers")
GUILD = "Base Builders"

# Whether a server's open tab is the one in the address: a page that is loaded shows that of the visit before at first.
ON_ITS_TAB = """
(() => {
  const wanted = new URLSearchParams(location.search).get('tab');
  const open = document.querySelector('#tabs [aria-current=page]');
  return !wanted || (open && new URL(open.href).searchParams.get('tab') === wanted);
})()
"""


@dataclass(frozen=True)
class Screen:
    """One screen: `shows` is the level-one heading (or a part of it) of the loaded screen."""

    name: str
    path: str
    shows: str


def for_visitors() -> list[Screen]:
    """Return the screens for people who are not signed in."""
    read = [Screen(page.route.strip("/"), page.route, page.title) for page in (*PUBLIC_PAGES, *OPERATOR_PAGES)]
    return [
        Screen("landing", "/", "Roles that hold as long as the NFT does"),
        Screen("login", "/login", "Welcome to Holdfast"),
        Screen("oauth-error", "/oauth-error?error=auth_failed", "Authentication Error"),
        *read,
    ]


def for_members(product: Product, server_id: int) -> list[Screen]:
    """Return the screens for the admin ada, with the configuration of one of her servers."""
    return of_server({"serverId": server_id, "discordServerId": product.guild(GUILD)["id"], "serverName": GUILD})


def of_server(server: Mapping[str, object]) -> list[Screen]:
    """Return the same screens, with the parameters that name the server in an address."""
    address = urlencode(server)
    return [
        Screen("dashboard", "/dashboard", "Welcome back, ada"),
        Screen("account", "/account", "Account"),
        Screen("invite", "/invite", "Invite HoldfastBot to Your Servers"),
        Screen("server-setup", "/server-setup", "Add a server by hand"),
        *(Screen(f"server-config-{tab}", f"/server-config?{address}&tab={tab}", GUILD) for tab in TABS),
        Screen("add-verification-rule", f"/add-verification-rule?{address}", "Verification Rule"),
        Screen("wallet-verification", "/wallet-verification", "Wallet Verification"),
        Screen("not-found", "/nowhere", "404 Page Not Found"),
        Screen("features-signed-in", "/features", "Features"),
    ]


async def settled(page: Page, screen: Screen) -> None:
    """Wait until the screen shows its heading and nothing in it is loading."""
    await page.get_by_role("heading", level=1, name=screen.shows).first.wait_for()
    await page.wait_for_function(
        f"() => {ON_ITS_TAB} && document.querySelectorAll('main [role=status][aria-label=Loading]').length === 0"
    )
