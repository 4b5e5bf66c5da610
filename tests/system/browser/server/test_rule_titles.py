"""The browser tab is named after the rule that is open."""

import re
from collections.abc import Awaitable, Callable

from playwright.async_api import expect

from tests.system.browser.conftest import Product, Visitor
from tests.system.browser.server.test_refused_rule import open_rules

NewVisitor = Callable[..., Awaitable[Visitor]]

# Every title that the tab has had since.
NOTE_TITLES = """
() => {
  window.titles = [];
  new MutationObserver(() => window.titles.push(document.title)).observe(
    document.head, {childList: true, subtree: true, characterData: true});
}
"""


async def test_a_new_rule_is_not_named_after_the_one_that_was_edited_before(
    product: Product, visit: NewVisitor
) -> None:
    page = await open_rules(product, visit)
    await page.get_by_role("link", name="Add Rule").first.click()
    await page.get_by_label("Blockchain").select_option("polygon")
    await page.get_by_label("Contract Address").fill(product.world()["chains"]["polygon"]["collections"][0]["contract"])
    await page.get_by_label("Role", exact=True).select_option("Whale")
    await page.get_by_role("button", name="Create Rule").click()
    await page.evaluate(NOTE_TITLES)
    await page.get_by_role("link", name="Edit").click()
    await expect(page.get_by_label("Contract Address")).not_to_have_value("")
    assert await page.title() == "Edit verification rule · Holdfast"
    assert not any("Add verification rule" in title for title in await page.evaluate("window.titles"))
    await page.get_by_role("link", name="Cancel").click()
    await page.get_by_role("link", name="Add Rule").first.wait_for()
    await page.evaluate(NOTE_TITLES)
    await page.get_by_role("link", name="Add Rule").first.click()
    await expect(page.get_by_label("Contract Address")).to_have_value("")
    await expect(page).to_have_title(re.compile("^Add verification rule"))
    assert not any("Edit verification rule" in title for title in await page.evaluate("window.titles"))
