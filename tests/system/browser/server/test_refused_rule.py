"""The rule form leads to the field that was refused."""

from collections.abc import Awaitable, Callable

from playwright.async_api import Page, expect

from tests.system.browser.conftest import Product, Visitor
from tests.system.browser.village import village

NewVisitor = Callable[..., Awaitable[Visitor]]


async def open_rules(product: Product, visit: NewVisitor) -> Page:
    """Return the page of a server without rules."""
    here = village(product, "bob")
    bob = await visit()
    await bob.enter(here["bob"])
    await bob.page.get_by_role("listitem").filter(has_text=here.guild).get_by_role("link", name="Configure").click()
    await bob.page.get_by_role("link", name="Add Rule").first.wait_for()
    return bob.page


async def test_the_field_that_was_refused_gets_the_focus(product: Product, visit: NewVisitor) -> None:
    page = await open_rules(product, visit)
    await page.get_by_role("link", name="Add Rule").first.click()
    role, contract = page.get_by_label("Role", exact=True), page.get_by_label("Contract Address")
    create = page.get_by_role("button", name="Create Rule")
    await expect(role.locator("option", has_text="Whale")).to_be_attached()
    await create.press("Enter")
    await expect(contract).to_be_focused()
    await expect(contract).to_be_in_viewport()
    await expect(contract).to_have_attribute("aria-invalid", "true")
    await create.focus()
    await create.press("Enter")
    await expect(contract).to_be_focused()

    # The fault is in a condition that is closed: it is opened first.
    await page.get_by_role("button", name="Add another condition").click()
    await page.get_by_label("Blockchain").select_option("polygon")
    await contract.fill(product.world()["chains"]["polygon"]["collections"][0]["contract"])
    await expect(contract).not_to_have_attribute("aria-invalid", "true")
    await create.press("Enter")
    await expect(page.get_by_role("button", name="Edit Condition 2")).to_be_visible()
    await expect(contract).to_have_value("")
    await expect(contract).to_be_focused()

    await page.get_by_role("button", name="Remove Condition 1").click()
    await expect(page.get_by_label("Rule Name", exact=True)).not_to_have_value("")
    await create.press("Enter")
    await expect(role).to_be_focused()
    await expect(role).to_be_in_viewport()
    await role.select_option("Whale")
    await page.get_by_role("button", name="Add a tier").click()
    await page.get_by_label("Maximum Tokens").fill("4")
    await page.get_by_label("Tier 2: from").fill("5")
    await create.press("Enter")
    await expect(page.get_by_label("Tier 2: role")).to_be_focused()
