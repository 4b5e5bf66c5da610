"""What arrives late moves no control under the pointer, and no screen begins with what an earlier visit left there."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from contextlib import closing

from playwright.async_api import Locator, Page, expect

from state.core.timing import RULES_POLL_SECONDS
from tests.system.browser.conftest import Product, Visitor
from tests.system.browser.server.slow_answers import Slow
from tests.system.browser.village import Village, village
from tests.system.whole.people import Person, rule

NewVisitor = Callable[..., Awaitable[Visitor]]
NOBODY = "No member known here gains or loses the role."
READ = '"known_rx_state_":true'
"""In the answer that ends the reading of a preview."""
LIGHT = "/features"
"""A screen that reads nothing, to begin on."""
PLACE = "one => one.getBoundingClientRect().top + window.scrollY"
"""A control's place on the page, however far it is scrolled."""


async def opened(visit: NewVisitor, here: Village, path: str) -> tuple[Visitor, Slow]:
    """The owner's browser, and its socket."""
    owner, server = await visit(), Slow()
    await owner.page.route_web_socket("**/_event/**", server.through)
    await owner.enter(here["bob"], path)
    return owner, server


async def with_rule(product: Product, here: Village) -> None:
    with closing(Person(product, here["bob"])) as bob:
        payload = rule(product, contract_on(product, "base"), here.guild, "Whale", bob.server(here.guild)["internalId"])
        await asyncio.to_thread(lambda: bob.post("/api/verification-rules", **payload))


async def pressed_meanwhile(page: Page, button: Locator, server: Slow, arrived: Locator) -> None:
    """Press a button with the mouse at its lower edge, and release it only when the late answers have arrived."""
    box = await button.bounding_box()
    assert box is not None
    await button.hover(position={"x": box["width"] / 2, "y": box["height"] - 2})
    await page.mouse.down()
    server.answers()
    await expect(arrived).to_be_visible()
    await page.mouse.up()


def contract_on(product: Product, chain: str) -> str:
    return product.world()["chains"][chain]["collections"][0]["contract"]


async def test_a_preview_that_arrives_during_the_press_does_not_lose_it(product: Product, visit: NewVisitor) -> None:
    here = village(product, "bob")
    owner, server = await opened(visit, here, here.rules)
    page = owner.page
    await page.get_by_role("link", name="Add Rule").first.click()
    await page.get_by_label("Blockchain").select_option("polygon")
    await page.set_viewport_size({"width": 390, "height": 800})
    below = await page.get_by_label("Minimum Tokens").evaluate(PLACE)
    await page.get_by_label("Contract Address").fill(contract_on(product, "polygon"))
    await expect(page.get_by_label("Rule Name", exact=True)).not_to_have_value("")
    assert await page.get_by_label("Minimum Tokens").evaluate(PLACE) == below
    await page.set_viewport_size({"width": 1280, "height": 800})
    await expect(page.get_by_label("Role", exact=True).locator("option", has_text="Whale")).to_be_attached()
    server.holds = True
    await page.get_by_label("Role", exact=True).select_option("Whale")
    await pressed_meanwhile(page, page.get_by_role("button", name="Create Rule"), server, page.get_by_text(NOBODY))
    await expect(page.get_by_role("listitem").filter(has_text="At least 1")).to_be_visible()


async def test_a_dialogs_buttons_stay_where_they_are_while_it_grows(product: Product, visit: NewVisitor) -> None:
    here = village(product, "bob")
    await with_rule(product, here)
    owner, server = await opened(visit, here, here.rules)
    page = owner.page
    question = page.get_by_role("dialog")
    for width in (1280, 390):
        await page.set_viewport_size({"width": width, "height": 800})
        server.holds, server.only = True, READ
        await page.get_by_role("button", name="Pause").click()
        leave = question.get_by_role("button", name="Leave it as it is")
        await pressed_meanwhile(page, leave, server, question.get_by_text(NOBODY))
        await expect(question).to_be_hidden()
    server.holds = True
    await page.get_by_role("button", name="Delete").click()
    await pressed_meanwhile(
        page, question.get_by_role("button", name="Delete rule"), server, question.get_by_text(NOBODY)
    )
    await expect(page.get_by_role("heading", name="No rules yet")).to_be_visible()


async def test_what_others_change_is_not_shown_while_the_pointer_aims(product: Product, visit: NewVisitor) -> None:
    here = village(product, "bob")
    owner, server = await visit(), Slow()
    page = owner.page
    await page.clock.install()
    await page.route_web_socket("**/_event/**", server.through)
    await owner.enter(here["bob"], here.rules)
    await expect(page.get_by_role("heading", name="No rules yet")).to_be_visible()
    aim = page.get_by_role("main").get_by_role("link", name="Add Rule").last
    await aim.hover()
    await page.clock.pause_at(await page.evaluate("Date.now() / 1000 + 0.5"))
    server.asked.clear()
    await with_rule(product, here)
    step = round(RULES_POLL_SECONDS * 1000 / 8)
    for offset in range(10):
        await aim.hover(position={"x": 10 + offset, "y": 10})
        await page.clock.run_for(step)
    assert not any("rules_state.look" in one for one in server.asked)
    await page.clock.run_for(round(RULES_POLL_SECONDS * 2000))
    await page.clock.resume()
    await expect(page.get_by_role("listitem").filter(has_text="Whale")).to_be_visible()


async def test_the_words_of_a_preview_fit_into_its_dialog(product: Product, visit: NewVisitor) -> None:
    """The longest are Portuguese."""
    here = village(product, "bob")
    await with_rule(product, here)
    owner = await visit(locale="pt-BR")
    await owner.enter(here["bob"], here.rules)
    page = owner.page
    await page.get_by_role("button", name="Apagar").click()
    labels = page.get_by_role("dialog").get_by_role("term")
    await expect(labels).to_have_count(4)
    for label in await labels.all():
        assert await label.evaluate("one => one.scrollWidth <= one.clientWidth"), await label.inner_text()


async def test_the_cards_below_the_rules_come_when_all_above_them_is_read(product: Product, visit: NewVisitor) -> None:
    here = village(product, "bob")
    owner, server = await opened(visit, here, LIGHT)
    page = owner.page
    await page.get_by_role("button", name="Logout").wait_for()
    server.holds, server.only = True, "rules_state"
    await owner.follow(here.rules)
    await expect(page.get_by_role("navigation", name="Server configuration")).to_be_visible()
    export = page.get_by_role("link", name="Export rules")
    await expect(export).to_be_hidden()
    server.answers()
    await expect(page.get_by_role("heading", name="No rules yet")).to_be_visible()
    await expect(export).to_be_visible()


async def test_the_hand_over_comes_when_the_wallets_above_it_are_read(product: Product, visit: NewVisitor) -> None:
    here = village(product, "bob")
    owner, server = await opened(visit, here, LIGHT)
    page = owner.page
    await page.get_by_role("button", name="Logout").wait_for()
    server.holds = True
    await page.get_by_role("link", name="Verify Wallets").first.click()
    await expect(page.get_by_role("heading", name="Verified Wallets")).to_be_visible()
    entry = page.get_by_label("Code of your other account")
    await expect(entry).to_be_hidden()
    server.answers()
    await expect(page.get_by_text("No verified wallets yet")).to_be_visible()
    await expect(entry).to_be_visible()


async def test_a_name_that_arrives_late_leaves_the_wallets_button_in_its_place(
    product: Product, visit: NewVisitor
) -> None:
    here = village(product, "bob")
    address, name = product.wallet(here["bob"]), f"{here['bob']}.eth"
    product.control("chains/ethereum/name", {"name": name, "address": address, "of": address})
    with closing(Person(product, here["bob"])) as bob:
        await asyncio.to_thread(bob.prove)
    owner, server = await opened(visit, here, LIGHT)
    page = owner.page
    await page.get_by_role("button", name="Logout").wait_for()
    server.holds, server.only = True, name
    await page.get_by_role("link", name="Verify Wallets").first.click()
    remove = page.get_by_role("button", name="Remove 0x")
    place = await remove.evaluate(PLACE)
    server.answers()
    await expect(page.get_by_text(name, exact=True)).to_be_visible()
    assert await remove.evaluate(PLACE) == place


async def test_a_form_opened_again_shows_nothing_that_an_earlier_visit_left_in_it(
    product: Product, visit: NewVisitor
) -> None:
    here = village(product, "bob")
    await with_rule(product, here)
    owner, server = await opened(visit, here, here.rules)
    page = owner.page
    least = page.get_by_label("Minimum Tokens")
    await page.get_by_role("link", name="Edit").click()
    await expect(page.get_by_role("heading", name="Edit Verification Rule")).to_be_visible()
    await expect(least).to_be_visible()
    await page.evaluate("history.back()")
    server.holds = True
    await page.get_by_role("link", name="Add Rule").first.click()
    await expect(page.get_by_role("status", name="Loading")).to_be_visible()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Add Verification Rule")
    server.answers()
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
