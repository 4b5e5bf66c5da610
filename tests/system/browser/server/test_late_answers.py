"""No screen begins with what an earlier visit left there, however late the server answers."""

import re
from collections.abc import Awaitable, Callable

from playwright.async_api import Page, expect

from tests.system.browser.conftest import Product, Visitor
from tests.system.browser.server.slow_answers import Slow
from tests.system.browser.village import Village, village

NewVisitor = Callable[..., Awaitable[Visitor]]


async def at_dashboard(product: Product, visit: NewVisitor, here: Village) -> tuple[Page, Slow]:
    """The owner's browser on the dashboard, and its socket."""
    owner, server = await visit(), Slow()
    await owner.page.route_web_socket("**/_event/**", server.through)
    await owner.enter(here["bob"])
    return owner.page, server


async def configure(page: Page, here: Village) -> None:
    await page.get_by_role("listitem").filter(has_text=here.guild).get_by_role("link", name="Configure").click()


async def test_a_form_opened_again_shows_nothing_that_an_earlier_visit_left_in_it(
    product: Product, visit: NewVisitor
) -> None:
    here = village(product, "bob")
    page, server = await at_dashboard(product, visit, here)
    await configure(page, here)
    least = page.get_by_label("Minimum Tokens")
    await page.get_by_role("link", name="Add Rule").first.click()
    for again in ("link", "forward"):
        await page.get_by_label("Contract Address").fill("left behind")
        await least.fill("7")
        await expect(page.get_by_text("At least 7", exact=False).first).to_be_visible()
        server.holds = True
        await page.evaluate("history.back()")
        await page.get_by_role("dialog").get_by_role("button", name="Leave without saving").click()
        await expect(page).to_have_url(re.compile("/server-config"))
        if again == "link":
            await page.get_by_role("link", name="Add Rule").first.click()
        else:
            await page.evaluate("history.forward()")
        await expect(page).to_have_url(re.compile("/add-verification-rule"))
        await expect(page.get_by_role("status", name="Loading")).to_be_visible()
        await expect(least).to_have_count(0)
        server.answers()
        await expect(least).to_have_value("1")
