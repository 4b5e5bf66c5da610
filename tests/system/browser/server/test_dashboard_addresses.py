"""Addresses that name one server: its configuration, or its card on the dashboard."""

from collections.abc import Awaitable, Callable

from playwright.async_api import expect

from tests.system.browser.conftest import Product, Visitor
from tests.system.browser.village import add_bot, village

NewVisitor = Callable[..., Awaitable[Visitor]]


async def test_addresses_of_one_server(visit: NewVisitor) -> None:
    bob = await visit(viewport={"width": 360, "height": 420})
    await bob.enter("bob")
    page = bob.page
    card = page.get_by_role("listitem").filter(has_text="Base Builders").filter(has_text="Verification Rules")
    server = (await card.get_attribute("id") or "").removeprefix("server-")
    configure = await card.get_by_role("link", name="Configure").get_attribute("href") or ""
    number = configure.partition("serverId=")[2].partition("&")[0]

    await bob.open(f"/dashboard?server={server}")
    await expect(page.locator(f"#server-{server}")).to_have_css("outline-style", "solid")
    await expect(page.locator(f"#server-{server}")).to_be_in_viewport()
    await bob.open("/dashboard?server=1")
    await expect(card).to_be_visible()
    await expect(card).to_have_css("outline-style", "none")

    await bob.open(f"/dashboard/server/{number}")
    await page.wait_for_url(f"**/server-config?serverId={number}&discordServerId={server}&serverName=*")
    await expect(page.get_by_role("heading", name="Base Builders")).to_be_visible()
    await bob.open("/dashboard/server/999999")
    await page.wait_for_url("**/dashboard")


async def test_each_address_scrolls_to_the_server_that_it_names(product: Product, visit: NewVisitor) -> None:
    here = village(product, "eve")
    for name in ("Annex", "Barn"):
        product.control("guilds", {"action": "create", "guild": f"{name} of {here.guild}", "owner": here["eve"]})
        add_bot(product, here["eve"], f"{name} of {here.guild}")
    eve = await visit(viewport={"width": 360, "height": 420})
    await eve.enter(here["eve"])
    cards = eve.page.get_by_role("listitem").filter(has_text=here.guild)
    await expect(cards).to_have_count(3)
    for card in (await cards.all())[::-1]:
        server = await card.get_attribute("id") or ""
        await eve.open(f"/dashboard?server={server.removeprefix('server-')}")
        await expect(eve.page.locator(f"#{server}")).to_have_css("outline-style", "solid")
        await expect(eve.page.locator(f"#{server}")).to_be_in_viewport(ratio=0.9)
