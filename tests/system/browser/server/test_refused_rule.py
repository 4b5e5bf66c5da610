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
    await bob.enter(here["bob"], here.rules)
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
    # Until then the fields are those of the first condition.
    await expect(page.get_by_role("heading", name="Condition 2")).to_be_visible()
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


async def test_a_toast_hides_neither_the_refusal_nor_the_buttons_and_paper_has_none_of_them(
    product: Product, visit: NewVisitor
) -> None:
    page = await open_rules(product, visit)
    await page.get_by_role("link", name="Add Rule").first.click()
    await page.set_viewport_size({"width": 390, "height": 844})
    await page.get_by_label("Contract Address").fill("https://shop.example/collection/kelp")
    await page.get_by_role("button", name="Create Rule").click()
    bar, toast = page.locator(".action-bar"), page.locator("[data-toast]")
    await expect(bar.get_by_role("alert")).to_be_visible()
    # A refusal may be much longer, and its toast too.
    for words in (bar.get_by_role("alert"), toast.locator("p").last):
        await words.evaluate("one => { one.textContent = 'A long sentence about what is wrong. '.repeat(6); }")
    over, below = await toast.bounding_box(), await bar.bounding_box()
    assert over is not None
    assert below is not None
    assert over["y"] + over["height"] <= below["y"]

    await page.emulate_media(media="print")
    await expect(page.get_by_role("heading", name="Add Verification Rule")).to_be_visible()
    for around in (bar, toast, page.get_by_role("banner"), page.get_by_role("contentinfo")):
        await expect(around).to_be_hidden()
    await expect(page.get_by_text("Sandbox: nothing here is real.")).to_be_hidden()
