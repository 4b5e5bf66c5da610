"""Every screen: no barrier known to axe in either theme, no sideways scrolling, and complete use by keyboard.

Each screen is opened once, by a link, and checked in every way while it is open; the tests are about what was found.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field

import pytest_asyncio
from playwright.async_api import Browser, Page, ViewportSize

from tests.system.browser.barriers import OF_COLOURS, grave_faults
from tests.system.browser.conftest import Product, Visitor, visitors
from tests.system.browser.screens import GUILD, Screen, for_members, for_visitors, settled
from tests.system.whole.people import Person, rule

WIDTHS = (1440, 768, 360)
USUAL = ViewportSize(width=WIDTHS[0], height=900)
GONE, REDRAWN = "no longer in the page", 3

# Every element that the keyboard should reach, numbered; elements that are not drawn are left out.
# From then on each element that gets the focus is recorded, and whether its focus is visible.
REACHABLE = """
() => {
  document.activeElement?.blur();
  // What several screens share still has its number of the screen before.
  document.querySelectorAll('[data-reach]').forEach(one => delete one.dataset.reach);
  window.walked = {reached: [], unseen: []};
  window.noting ??= document.addEventListener('focusin', ({target}) => {
    const style = getComputedStyle(target);
    const seen = (style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0) || style.boxShadow !== 'none';
    window.walked.reached.push(target.dataset.reach);
    if (!seen) window.walked.unseen.push(target.outerHTML.slice(0, 160));
  }) ?? true;
  return [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')]
    .filter(one => !one.disabled && one.tabIndex >= 0 && one.type !== 'hidden'
      && one.checkVisibility({visibilityProperty: true, contentVisibilityAuto: true})
      && !one.closest('[inert], details:not([open]) > :not(summary)'))
    .filter(one => one.type !== 'radio' || one.checked || !document.querySelector(`[name="${one.name}"]:checked`))
    .map((one, index) => String(one.dataset.reach = index));
}
"""
# A date is one element with four stops: month, day, year and the button of its calendar.
WITHIN_DATES = "() => 3 * document.querySelectorAll('input[type=date]').length"
# Controls without visible text that lack a name for people who hear them or a tooltip for people who point.
WORDLESS = """
() => [...document.querySelectorAll('a[href], button, summary')]
  .filter(one => one.checkVisibility() && !one.innerText.trim())
  .filter(one => !one.getAttribute('aria-label') || !(one.title || one.closest('[data-words]')))
  .map(one => one.outerHTML.slice(0, 160))
"""

# Marks that are narrower than drawn, because the words beside them took their space.
SQUEEZED = """
() => [...document.querySelectorAll('a > svg, button > svg')]
  .filter(one => one.checkVisibility() && one.getBoundingClientRect().width + 0.5 < Number(one.getAttribute('width')))
  .map(one => one.parentElement.outerHTML.slice(0, 160))
"""


# The width that the page needs, with text as it is and at 200 % (WCAG 1.4.4).
NEEDED = """
() => Math.max(...['200%', ''].map(size => {
  document.documentElement.style.fontSize = size;
  return document.documentElement.scrollWidth;
}))
"""


@dataclass(frozen=True)
class Found:
    """The faults found on all screens; empty lists when all is well."""

    grave: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    wide: list[tuple[str, int, int]] = field(default_factory=list)
    wordless: dict[str, list[str]] = field(default_factory=dict)
    squeezed: dict[str, list[str]] = field(default_factory=dict)
    unreached: dict[str, list[str]] = field(default_factory=dict)


@asynccontextmanager
async def a_resting_rule(product: Product) -> AsyncIterator[int]:
    """Create a rule that gives nothing, so that lists are not empty, and return its server's id."""
    contract = product.world()["chains"]["base"]["collections"][0]["contract"]
    with closing(Person(product, "ada")) as ada:
        server_id = ada.server(GUILD)["internalId"]
        resting = rule(product, contract, GUILD, "Collector", server_id) | {"minTokens": 999, "shadow": True}
        made = ada.post("/api/verification-rules", **resting)
        try:
            yield server_id
        finally:
            ada.delete(f"/api/verification-rules/{made['id']}")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def found(chromium: Browser, product: Product) -> Found:
    """The faults found by a visitor and ada, each on all screens that they may see."""
    found = Found()
    async with visitors(chromium, product) as visit, a_resting_rule(product) as server_id:
        visitor, ada = await visit(), await visit()
        await ada.enter("ada")
        await asyncio.gather(_look(visitor, for_visitors(), found), _look(ada, for_members(product, server_id), found))
    return found


async def test_axe_finds_nothing_grave_in_light_and_dark(found: Found) -> None:
    assert found.grave == {}


async def test_no_screen_scrolls_sideways_and_no_mark_is_without_words_or_room(found: Found) -> None:
    assert (found.wide, found.wordless, found.squeezed) == ([], {}, {})


async def test_the_keyboard_reaches_everything_and_the_focus_is_seen(found: Found) -> None:
    assert found.unreached == {}


async def _look(who: Visitor, screens: list[Screen], found: Found) -> None:
    """Open each screen and record its faults."""
    await who.open(screens[0].path)
    for number, screen in enumerate(screens):
        await who.page.set_viewport_size(USUAL)
        if number:
            await who.follow(screen.path)
        await settled(who.page, screen)
        # Each screen begins in the theme in which the one before ended.
        for theme, only in zip(("dark", "light") if number % 2 else ("light", "dark"), ((), OF_COLOURS), strict=True):
            await who.page.emulate_media(color_scheme=theme)
            if grave := await grave_faults(who.page, only=only):
                found.grave[screen.name, theme] = grave
        if faults := await walked(who, lambda page, screen=screen: settled(page, screen)):
            found.unreached[screen.name] = faults
        for width in WIDTHS:
            await who.page.set_viewport_size({"width": width, "height": 900})
            needed = await who.page.evaluate(NEEDED)
            if needed > width:
                found.wide.append((screen.name, width, needed))
            if marks := await who.page.evaluate(WORDLESS):
                found.wordless[f"{screen.name} at {width}"] = marks
            if marks := await who.page.evaluate(SQUEEZED):
                found.squeezed[f"{screen.name} at {width}"] = marks


async def press_tab(page: Page, times: int) -> None:
    """Press Tab so many times; no press waits for an answer to the one before, which is drawn and costs most."""
    keyboard = await page.context.new_cdp_session(page)
    key = {"key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9}
    await asyncio.gather(
        *(
            keyboard.send("Input.dispatchKeyEvent", {"type": kind, **key})
            for _ in range(times)
            for kind in ("rawKeyDown", "keyUp")
        )
    )
    await keyboard.detach()


async def walked(who: Visitor, drawn: Callable[[Page], Awaitable[None]]) -> list[str]:
    """Press Tab through the whole page; return the elements not reached, and those whose focus was not visible.

    `drawn` waits until a list that is read meanwhile has been drawn.
    """
    faults: list[str] = []
    for _ in range(REDRAWN):
        wanted = await who.page.evaluate(REACHABLE)
        await press_tab(who.page, len(wanted) + 3 + await who.page.evaluate(WITHIN_DATES))
        walk = await who.page.evaluate("window.walked")
        missing = [
            await who.page.evaluate(f"document.querySelector('[data-reach=\"{one}\"]')?.outerHTML.slice(0, 160)")
            for one in sorted(set(wanted) - set(walk["reached"]))
        ]
        faults = [GONE if one is None else f"not reached: {one}" for one in missing]
        faults += [f"not seen: {one}" for one in walk["unseen"]]
        if not faults:
            break
        # A list may have been read and drawn again on the way, which also moves the place where Tab continues: an
        # element that cannot be reached is missed on every walk.
        await drawn(who.page)
    return faults
