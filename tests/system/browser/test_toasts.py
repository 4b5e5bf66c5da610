"""Toasts: one at a time, for five seconds, F8, a swipe to the right; and tooltips of controls.

See docs/specification.md#section-9-constants.
"""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest_asyncio
from playwright.async_api import Browser, Locator, Page, expect

from state.core.timing import TOAST_MILLISECONDS, TOAST_SWIPE_PIXELS, TOAST_WIDTH_PIXELS, TOOLTIP_DELAY_MILLISECONDS
from tests.system.browser.conftest import Product, Visitor, visitors
from tests.system.browser.village import village

NewVisitor = Callable[..., Awaitable[Visitor]]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def form(chromium: Browser, product: Product) -> AsyncIterator[Page]:
    """The form that adds a server: sent empty, it shows a toast, of which each test leaves nothing."""
    owner = village(product, "tess", bot=False)["tess"]
    async with visitors(chromium, product) as visit:
        visitor = await visit(reduced_motion="no-preference")
        await visitor.page.clock.install()
        await visitor.enter(owner, "/server-setup")
        yield visitor.page


async def refused(page: Page) -> Locator:
    """Send the empty form and return its toast."""
    await page.get_by_role("button", name="Create Server").click()
    toast = page.locator("[data-toast]")
    await expect(toast).to_contain_text("Missing required fields")
    await expect(toast).to_contain_text("Please fill in Discord Server ID and Server Name")
    return toast


async def test_one_toast_at_a_time_and_it_disappears(form: Page) -> None:
    await refused(form)
    toast = await refused(form)
    await expect(toast).to_have_count(1)
    place = form.get_by_role("region", name="Notifications (F8)")
    await expect(place).to_have_css("max-width", f"{TOAST_WIDTH_PIXELS}px")
    await expect(form.locator("[aria-live=assertive]")).to_contain_text("Missing required fields")
    # On a phone the end of the page can be scrolled out from behind it.
    await form.set_viewport_size({"width": 390, "height": 844})
    await form.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    lowest = await form.get_by_role("contentinfo").get_by_role("link").last.bounding_box()
    over = await toast.bounding_box()
    assert lowest is not None
    assert over is not None
    assert lowest["y"] + lowest["height"] <= over["y"]
    await form.clock.fast_forward(TOAST_MILLISECONDS)
    await expect(toast).to_have_count(0)
    await form.set_viewport_size({"width": 1280, "height": 720})


async def test_the_keyboard_finds_holds_and_dismisses_a_toast(form: Page) -> None:
    toast = await refused(form)
    await form.get_by_label("Server Name *").focus()
    await form.keyboard.press("F8")
    await expect(toast).to_be_focused()
    await form.clock.fast_forward(TOAST_MILLISECONDS)
    await expect(toast).to_be_visible()
    await form.keyboard.press("Escape")
    await expect(toast).to_have_count(0)
    await expect(form.get_by_label("Server Name *")).to_be_focused()
    toast = await refused(form)
    await toast.get_by_role("button", name="Close").hover()
    await form.clock.fast_forward(TOOLTIP_DELAY_MILLISECONDS)
    await expect(form.get_by_role("tooltip")).to_have_text("Close")
    await toast.get_by_role("button", name="Close").click()
    await expect(toast).to_have_count(0)
    await form.keyboard.press("F8")
    await expect(form.get_by_role("region", name="Notifications (F8)")).to_be_focused()


async def test_a_page_that_is_loaded_again_does_not_repeat_a_toast(form: Page) -> None:
    toast = await refused(form)
    await form.reload()
    await expect(form.get_by_role("button", name="Create Server")).to_be_visible()
    await expect(toast).to_have_count(0)


async def swipe(page: Page, toast: Locator, pixels: int) -> None:
    """Grab the toast at its left and move it."""
    box = await toast.bounding_box()
    assert box is not None
    await page.mouse.move(box["x"] + 90, box["y"] + 12)
    await page.mouse.down()
    await page.mouse.move(box["x"] + 90 + pixels, box["y"] + 14, steps=6)
    await page.mouse.up()


async def test_a_swipe_to_the_right_dismisses_a_toast_and_a_shorter_or_other_one_does_not(form: Page) -> None:
    toast = await refused(form)
    for pixels in (TOAST_SWIPE_PIXELS - 5, -TOAST_SWIPE_PIXELS - 5):
        await swipe(form, toast, pixels)
        await expect(toast).to_be_visible()
    await swipe(form, toast, TOAST_SWIPE_PIXELS + 5)
    await expect(toast).to_have_count(0)


async def test_a_disabled_control_says_why_to_pointer_and_keyboard(product: Product, visit: NewVisitor) -> None:
    here = village(product, "tom")
    visitor = await visit(reduced_motion="no-preference")
    await visitor.enter(here["tom"])
    page, words = visitor.page, visitor.page.get_by_role("tooltip")
    await page.get_by_role("button", name="Bot Active").wait_for()
    # Time moves only by the leaps below: on a busy machine a look can come later than a tooltip.
    await page.clock.install(time=0)
    await page.clock.pause_at(3_600)
    box = page.get_by_role("group", name="The bot is in this server")
    await box.hover()
    await expect(words).to_have_count(0)
    await page.clock.fast_forward(TOOLTIP_DELAY_MILLISECONDS)
    await expect(words).to_have_text("The bot is in this server")
    await page.mouse.move(2, 2)
    await expect(words).to_have_count(0)
    await page.get_by_role("link", name="Configure").focus()
    await page.keyboard.press("Shift+Tab")
    await expect(box).to_be_focused()
    await expect(words).to_have_text("The bot is in this server")
    await page.keyboard.press("Escape")
    await expect(words).to_have_count(0)
