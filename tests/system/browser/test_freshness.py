"""When an open dashboard reads again: on focus, two seconds after it is seen again, daily.

See docs/specification.md#section-4-states-and-transitions and docs/specification.md#section-9-constants.
"""

import asyncio
from collections.abc import Awaitable, Callable

from playwright.async_api import Page, expect

from state.core.timing import ANALYTICS_STALE_SECONDS
from tests.system.browser.conftest import Product, Visitor
from tests.system.browser.village import Village, village
from tests.system.whole.people import Person

NewVisitor = Callable[..., Awaitable[Visitor]]

# The browser's own timers, recorded by their period, so that a test need not wait for a day.
NOTE_TIMERS = """
  window.noted = {};
  const real = window.setInterval;
  window.setInterval = (turn, period, ...rest) => { window.noted[period] = turn; return real(turn, period, ...rest); };
"""


def add(product: Product, who: str, here: Village) -> None:
    """Add the person's guild by the form's call, from another program of theirs."""
    person = Person(product, who)
    person.post("/api/servers", discordServerId=product.guild(here.guild)["id"], serverName=here.guild)
    person.close()


async def seen(page: Page, *, hidden: bool) -> None:
    """Hide or show the tab, as the browser reports it to a page."""
    await page.evaluate(
        "hidden => { Object.defineProperty(document, 'hidden', {configurable: true, get: () => hidden});"
        "document.dispatchEvent(new Event('visibilitychange', {bubbles: true})); }",
        hidden,
    )


async def test_servers_are_read_again_on_focus(product: Product, visit: NewVisitor) -> None:
    here = village(product, "fay", bot=False)
    visitor = await visit()
    await visitor.enter(here["fay"])
    await expect(visitor.page.get_by_role("heading", name="No servers configured")).to_be_visible()
    await asyncio.to_thread(add, product, here["fay"], here)
    await visitor.page.evaluate("window.dispatchEvent(new Event('focus'))")
    card = visitor.page.get_by_role("listitem").filter(has_text=here.guild)
    await expect(card.get_by_text("Inactive")).to_be_visible()
    await expect(card.get_by_role("button", name="Configure")).to_be_disabled()


async def test_servers_and_numbers_are_read_again_when_the_tab_is_seen_again_and_numbers_daily(
    product: Product, visit: NewVisitor
) -> None:
    here = village(product, "vic", bot=False)
    visitor = await visit()
    page = visitor.page
    number = page.locator("dl > div").filter(has_text="Connected Servers").locator("dd").first
    await page.add_init_script(NOTE_TIMERS)
    await visitor.enter(here["vic"])
    await expect(number).to_have_text("0")
    await asyncio.to_thread(add, product, here["vic"], here)
    await seen(page, hidden=True)
    await seen(page, hidden=False)
    await expect(page.get_by_role("heading", name=here.guild)).to_be_visible()
    await expect(number).to_have_text("1")

    more = village(product, "val", bot=False)
    vic = next(one for one in product.world()["users"] if one["username"] == here["vic"])["id"]
    product.control("guilds", {"action": "create", "guild": f"{more.guild} two", "owner": vic, "members": []})
    await asyncio.to_thread(add, product, here["vic"], Village(f"{more.guild} two", {}))
    await expect(number).to_have_text("1")
    await page.evaluate(f"window.noted[{ANALYTICS_STALE_SECONDS * 1000}]()")
    await expect(number).to_have_text("2")
