"""A rule form with unsaved changes asks before it is left, and never otherwise."""

import re
from collections.abc import Awaitable, Callable
from functools import cache

import httpx
from playwright.async_api import Dialog, Page, expect

from tests.system.browser.conftest import Product, Visitor, eventually
from tests.system.browser.server.slow_answers import Slow
from tests.system.browser.village import Village, village

NewVisitor = Callable[..., Awaitable[Visitor]]
TURN = "turn_rx_state_"
"""What the state of the rule form calls the number of its visit."""
FORM, SERVER = re.compile("/add-verification-rule"), re.compile("/server-config")


@cache
def home(product: Product) -> Village:
    """The guild of all tests here."""
    return village(product, "bob")


async def opened(product: Product, visit: NewVisitor) -> Page:
    """The form of a new rule, reached by a link from the server's rules, in a fresh browser of the owner's."""
    here = home(product)
    bob = await visit()
    await bob.enter(here["bob"], here.rules)
    page = bob.page
    await page.get_by_role("link", name="Add Rule").first.click()
    await expect(page.get_by_label("Role", exact=True).locator("option", has_text="Whale")).to_be_attached()
    return page


async def filled_in(page: Page) -> None:
    await page.get_by_label("Blockchain").select_option("polygon")
    await page.get_by_label("Minimum Tokens").fill("7")
    await page.get_by_label("Role", exact=True).select_option("Whale")
    await page.get_by_label("Contract Address").fill("half an addre")
    await expect(page.get_by_text("At least 7", exact=False).first).to_be_visible()


def questions_of_the_browser(page: Page) -> list[str]:
    """The kinds of the browser's own questions from now on; each is answered by staying."""
    asked = list[str]()

    async def stay(dialog: Dialog) -> None:
        asked.append(dialog.type)
        await dialog.dismiss()

    page.on("dialog", stay)
    return asked


async def nothing_lost(page: Page) -> None:
    await expect(page).to_have_url(FORM)
    await expect(page.get_by_label("Blockchain")).to_have_value("polygon")
    await expect(page.get_by_label("Minimum Tokens")).to_have_value("7")
    await expect(page.get_by_label("Role", exact=True).locator("option:checked")).to_have_text("Whale")
    await expect(page.get_by_label("Contract Address")).to_have_value("half an addre")


async def test_the_browsers_back_and_links_ask_before_they_leave_what_was_filled_in(
    product: Product, visit: NewVisitor
) -> None:
    page = await opened(product, visit)
    await filled_in(page)
    question = page.get_by_role("dialog", name="Leave without saving?")
    for answer, leads in (("Keep editing", FORM), ("Leave without saving", SERVER)):
        await page.evaluate("history.back()")
        await question.get_by_role("button", name=answer).click()
        await expect(question).to_be_hidden()
        await expect(page).to_have_url(leads)
        if leads is FORM:
            await nothing_lost(page)
    await page.get_by_role("link", name="Add Rule").first.click()
    await filled_in(page)
    for name in ("Back", "Dashboard"):
        link = page.get_by_role("link", name=name, exact=True).first
        await link.click()
        await expect(question.get_by_role("button", name="Keep editing")).to_be_focused()
        await page.keyboard.press("Escape")
        await expect(question).to_be_hidden()
        await expect(link).to_be_focused()
        await nothing_lost(page)
    await page.get_by_role("button", name="Logout").click()
    await question.get_by_role("button", name="Keep editing").click()
    await nothing_lost(page)
    await page.get_by_role("link", name="Dashboard", exact=True).first.click()
    await expect(question.get_by_role("button", name="Keep editing")).to_be_focused()
    await page.keyboard.press("Tab")
    await expect(question.get_by_role("button", name="Leave without saving")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile("/dashboard"))
    await expect(question).to_be_hidden()


async def test_nothing_is_asked_without_a_change_or_by_cancel(product: Product, visit: NewVisitor) -> None:
    page = await opened(product, visit)
    asked, question = questions_of_the_browser(page), page.get_by_role("dialog")
    removal, hours = page.get_by_label("When somebody no longer qualifies"), page.get_by_label("Grace time in hours")
    await removal.select_option("Wait for a grace time")
    await expect(hours).to_be_visible()
    await removal.select_option("Take the role at once")
    await expect(hours).to_have_count(0)
    await page.reload()
    await expect(page.get_by_label("Role", exact=True).locator("option", has_text="Whale")).to_be_attached()
    await page.get_by_role("link", name="Cancel").click()
    await expect(page).to_have_url(SERVER)
    await page.get_by_role("link", name="Add Rule").first.click()
    await expect(page).to_have_url(FORM)
    await page.evaluate("history.back()")
    await expect(page).to_have_url(SERVER)
    await expect(question).to_have_count(0)
    assert asked == []

    await page.get_by_role("link", name="Add Rule").first.click()
    await filled_in(page)
    await page.get_by_role("link", name="Cancel").click()
    await expect(page).to_have_url(SERVER)
    await expect(page.get_by_role("link", name="Add Rule").first).to_be_visible()
    await expect(question).to_have_count(0)
    assert asked == []
    await page.get_by_role("link", name="Add Rule").first.click()
    await filled_in(page)
    await page.get_by_role("link", name="Back", exact=True).first.click()
    await page.get_by_role("dialog").get_by_role("button", name="Keep editing").click()
    await nothing_lost(page)


async def test_loading_again_and_closing_ask_in_the_browsers_own_words(product: Product, visit: NewVisitor) -> None:
    page = await opened(product, visit)
    asked = questions_of_the_browser(page)
    await filled_in(page)
    await page.evaluate("location.reload()")
    await nothing_lost(page)
    assert asked == ["beforeunload"]
    async with page.expect_event("dialog"):
        await page.close(run_before_unload=True)
    await nothing_lost(page)


async def test_what_the_server_does_not_know_yet_is_asked_about_too(product: Product, visit: NewVisitor) -> None:
    page, server = await opened(product, visit), Slow()
    await page.route_web_socket("**/_event/**", server.through)
    await page.reload()
    # First comes the state of the visit before, then that of this one.
    await eventually(lambda: sum(TURN in one for one in server.passed) >= 2, "the form of this visit")
    contract = page.get_by_label("Contract Address")
    await expect(page.get_by_label("Role", exact=True).locator("option", has_text="Whale")).to_be_attached()
    server.holds = True
    await contract.fill("half an addre")
    await page.get_by_role("link", name="Back", exact=True).first.click()
    await page.get_by_role("dialog").get_by_role("button", name="Keep editing").click()
    await expect(contract).to_have_value("half an addre")


async def test_nothing_is_asked_after_saving(product: Product, visit: NewVisitor) -> None:
    page = await opened(product, visit)
    asked, question = questions_of_the_browser(page), page.get_by_role("dialog")
    contract = product.world()["chains"]["polygon"]["collections"][0]["contract"]
    await page.get_by_label("Blockchain").select_option("polygon")
    await page.get_by_label("Contract Address").fill(contract)
    await page.get_by_label("Role", exact=True).select_option("Whale")
    await page.get_by_role("button", name="Create Rule").click()
    await expect(page.get_by_role("listitem").filter(has_text="At least 1")).to_be_visible()
    await expect(page).to_have_url(SERVER)

    await page.get_by_role("link", name="Edit").click()
    await expect(page.get_by_label("Contract Address")).to_have_value(contract.lower())
    await page.get_by_label("Minimum Tokens").fill("8")
    await page.get_by_role("button", name="Save Changes").click()
    await question.get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_role("listitem").filter(has_text="At least 8")).to_be_visible()

    await page.get_by_role("link", name="Edit").click()
    await expect(page.get_by_label("Contract Address")).to_have_value(contract.lower())
    await page.get_by_role("link", name="Back").click()
    await expect(page).to_have_url(SERVER)
    await expect(question).to_have_count(0)
    assert asked == []


async def test_an_ended_session_leads_to_the_login_without_a_question(product: Product, visit: NewVisitor) -> None:
    page = await opened(product, visit)
    asked = questions_of_the_browser(page)
    await filled_in(page)
    cookies = {one.get("name"): one.get("value", "") for one in await page.context.cookies()}
    async with httpx.AsyncClient() as program:
        await program.post(product.url + "/api/auth/logout", headers={"x-session-id": cookies["hf_session"]})
    await page.get_by_role("button", name="Create Rule").click()
    await page.get_by_role("link", name="Go to Login").click()
    await page.get_by_text("Authorize as bob").first.wait_for()
    assert asked == []
