"""The keyboard goes on from where it was, when the control that had the focus goes away or is disabled."""

from collections.abc import Awaitable, Callable

from playwright.async_api import expect

from tests.system.browser.conftest import Product, Visitor
from tests.system.browser.server.slow_answers import Slow
from tests.system.browser.server.test_rules import open_form_through

NewVisitor = Callable[..., Awaitable[Visitor]]


async def test_the_next_control_gets_the_focus_of_one_that_goes_away(product: Product, visit: NewVisitor) -> None:
    ada = await visit()
    page = ada.page
    await open_form_through(ada, Slow().through)
    await page.get_by_label("Rule Type").select_option("token_id")
    entry = page.get_by_role("textbox", name="Token IDs")
    for number in ("9", "12"):
        await entry.fill(number)
        await entry.press("Enter")
    first, second = (page.get_by_role("button", name=f"Remove {number}", exact=True) for number in (9, 12))
    await first.press("Enter")
    await expect(first).to_have_count(0)
    await expect(second).to_be_focused()
    await second.press("Enter")
    await expect(page.get_by_role("button", name="Add", exact=True)).to_be_focused()

    await page.get_by_label("Rule Type").select_option("basic")
    await page.get_by_role("button", name="Add a tier").press("Enter")
    await expect(page.get_by_label("Tier 2: from")).to_be_focused()
    await page.get_by_role("button", name="Remove Tier 2").press("Enter")

    await page.get_by_role("button", name="Add another condition").press("Enter")
    await expect(page.get_by_role("heading", name="Condition 2")).to_be_visible()
    await expect(page.get_by_label("Rule Type")).to_be_focused()
    await expect(page.get_by_label("Rule Type")).to_be_in_viewport()
    await page.get_by_role("button", name="Edit Condition 1").press("Enter")
    await expect(page.get_by_label("Rule Type")).to_be_focused()
    await page.get_by_role("button", name="Remove Condition 2").press("Enter")
    await expect(page.get_by_label("Rule Type")).to_be_focused()
    await expect(page.get_by_label("Rule Type")).to_be_in_viewport()


async def test_a_new_condition_takes_the_focus_only_from_the_button_that_added_it(visit: NewVisitor) -> None:
    ada, server = await visit(), Slow()
    page = ada.page
    await open_form_through(ada, server.through)
    more = page.get_by_role("button", name="Add another condition")
    await expect(more).to_be_enabled()
    server.holds = True
    await more.press("Enter")
    await expect(more).to_have_attribute("aria-busy", "true")
    await page.get_by_label("When somebody no longer qualifies").focus()
    server.answers()
    await expect(page.get_by_role("heading", name="Condition 2")).to_be_visible()
    await expect(more).not_to_have_attribute("aria-busy", "true")
    await expect(page.get_by_label("When somebody no longer qualifies")).to_be_focused()


async def test_a_button_that_was_disabled_for_a_while_gets_the_focus_back(product: Product, visit: NewVisitor) -> None:
    ada, server = await visit(), Slow()
    page = ada.page
    await open_form_through(ada, server.through)
    await page.get_by_label("Contract Address").fill(product.world()["chains"]["base"]["collections"][0]["contract"])
    await page.get_by_label("Blockchain").select_option("base")
    await expect(page.get_by_label("Rule Name", exact=True)).not_to_have_value("")
    again = page.get_by_role("button", name="Refresh collection")
    await expect(again).to_be_enabled()
    server.only, server.holds = '"looking_rx_state_":false', True
    await again.press("Enter")
    await expect(again).to_be_disabled()
    await expect(again).not_to_be_focused()
    server.answers()
    await expect(again).to_be_focused()

    # The button that opens a dialog is disabled until the dialog is there.
    await page.get_by_label("Role", exact=True).select_option("Holder")
    await page.get_by_label("Take over this role").click()
    create = page.locator(".action-bar button[type=submit]")
    server.only, server.holds = '"asking_rx_state_":true', True
    await create.press("Enter")
    await expect(create).to_be_disabled()
    await expect(create).not_to_be_focused()
    server.answers()
    await expect(page.get_by_role("button", name="Not yet")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(create).to_be_focused()


async def test_what_is_chosen_before_an_added_condition_is_there_stays_in_its_own(visit: NewVisitor) -> None:
    ada, server = await visit(), Slow()
    page = ada.page
    await open_form_through(ada, server.through)
    more = page.get_by_role("button", name="Add another condition")
    await expect(more).to_be_enabled()
    server.holds = True
    await more.press("Enter")
    await page.get_by_label("Rule Type").select_option("any_nft")
    server.answers()
    await expect(page.get_by_role("heading", name="Condition 2")).to_be_visible()
    await expect(page.get_by_text("Not filled in yet")).to_be_visible()
    await expect(page.get_by_role("button", name="Edit Condition 2")).to_be_visible()
    await expect(page.get_by_label("Rule Type")).to_have_value("any_nft")


async def test_a_button_that_chooses_a_file_shows_that_it_has_the_focus(visit: NewVisitor) -> None:
    ada = await visit()
    page = ada.page
    await open_form_through(ada, Slow().through)
    await page.get_by_label("Rule Type").select_option("address_list")
    button = page.locator("label", has_text="Choose a CSV file")
    await expect(button).to_have_css("outline-style", "none")
    await page.get_by_label("Addresses", exact=True).focus()
    await page.keyboard.press("Tab")
    await expect(button.locator("input")).to_be_focused()
    await expect(button).to_have_css("outline-style", "solid")
