"""What every screen keeps: no barrier known to axe in either theme, no sideways scrolling, all of it by keyboard."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, cast

import httpx
import pytest_asyncio
from axe_playwright_python.async_playwright import Axe

from tests.browser.conftest import Product, Visitor
from tests.browser.screens import GUILD, Screen, for_members, for_visitors, settled

NewVisitor = Callable[..., Awaitable[Visitor]]

WIDTHS = (360, 768, 1440)
GRAVE = {"serious", "critical"}
GONE, REDRAWN = "no longer in the page", 3

# Every element that the keyboard should reach, by an order of its own; those that are not drawn are left out.
REACHABLE = """
() => [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')]
  .filter(one => !one.disabled && one.tabIndex >= 0 && one.type !== 'hidden'
    && one.checkVisibility({visibilityProperty: true, contentVisibilityAuto: true})
    && !one.closest('[inert], details:not([open]) > :not(summary)'))
  .filter(one => one.type !== 'radio' || one.checked || !document.querySelector(`[name="${one.name}"]:checked`))
  .map((one, index) => { one.dataset.reach = index; return index; })
"""
# Which of them has the focus, and whether a person sees that it does.
FOCUSED = """
() => {
  const one = document.activeElement;
  if (!one || one === document.body) return null;
  const style = getComputedStyle(one);
  const seen = (style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0) || style.boxShadow !== 'none';
  return {reach: one.dataset.reach ?? null, seen, name: one.outerHTML.slice(0, 160)};
}
"""


# Controls that show no word of their own, and lack a name for those who hear or a word for those who point.
WORDLESS = """
() => [...document.querySelectorAll('a[href], button, summary')]
  .filter(one => one.checkVisibility() && !one.innerText.trim())
  .filter(one => !one.getAttribute('aria-label') || !(one.title || one.closest('[data-words]')))
  .map(one => one.outerHTML.slice(0, 160))
"""


@dataclass(frozen=True)
class Crowd:
    """Two open browsers, one of a visitor and one of ada, and the screens that each has."""

    visitor: Visitor
    ada: Visitor
    screens: tuple[tuple[Visitor, Screen], ...]


@pytest_asyncio.fixture(loop_scope="session")
async def crowd(product: Product, visit: NewVisitor) -> AsyncIterator[Crowd]:
    """A server with a resting rule, so that lists are not empty, and both audiences in front of it."""
    visitor, ada = await visit(), await visit()
    await ada.sign_in("ada")
    cookies = {one.get("name", ""): one.get("value", "") for one in await ada.context.cookies()}
    async with httpx.AsyncClient(base_url=product.url, cookies=cookies, timeout=30) as calls:
        server = next(one for one in (await calls.get("/api/servers")).json() if one["name"] == GUILD)
        rule = {
            "ruleName": "A resting rule", "blockchain": "base", "verificationType": "basic", "minTokens": 999,
            "contractAddress": product.world()["chains"]["base"]["collections"][0]["contract"], "shadow": True,
            "roleId": product.role(GUILD, "Collector"), "serverId": server["internalId"],
        }  # fmt: skip
        made = await calls.post("/api/verification-rules", json=rule)
        assert made.status_code == 201, made.text
        screens = [(visitor, screen) for screen in for_visitors()]
        screens += [(ada, screen) for screen in for_members(product, server["internalId"])]
        yield Crowd(visitor, ada, tuple(screens))
        await calls.delete(f"/api/verification-rules/{made.json()['id']}")


async def test_axe_finds_nothing_grave_in_light_and_dark(crowd: Crowd) -> None:
    axe, found = Axe(), dict[tuple[str, str], list[str]]()
    for who, screen in crowd.screens:
        await who.open(screen.path)
        await settled(who.page, screen)
        for theme in ("light", "dark"):
            await who.page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            faults = cast(list[dict[str, Any]], (await axe.run(who.page)).response["violations"])
            grave = [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in faults if one["impact"] in GRAVE]
            if grave:
                found[screen.name, theme] = grave
    assert found == {}


async def test_no_screen_scrolls_sideways_and_no_mark_is_without_words(crowd: Crowd) -> None:
    wide: list[tuple[str, int, int]] = []
    wordless: dict[str, list[str]] = {}
    for who, screen in crowd.screens:
        await who.open(screen.path)
        await settled(who.page, screen)
        for width in WIDTHS:
            await who.page.set_viewport_size({"width": width, "height": 900})
            needed = await who.page.evaluate("document.documentElement.scrollWidth")
            if needed > width:
                wide.append((screen.name, width, needed))
            if marks := await who.page.evaluate(WORDLESS):
                wordless[f"{screen.name} at {width}"] = marks
    assert (wide, wordless) == ([], {})


async def test_the_keyboard_reaches_everything_and_the_focus_is_seen(crowd: Crowd) -> None:
    unreached: dict[str, list[str]] = {}
    for who, screen in crowd.screens:
        await who.page.set_viewport_size({"width": 1280, "height": 900})
        await who.open(screen.path)
        await settled(who.page, screen)
        faults = await _walked(who)
        for _ in range(REDRAWN):
            if GONE not in faults:
                break
            # A list was read anew on the way and drawn again: the walk says nothing about what is there now.
            await settled(who.page, screen)
            faults = await _walked(who)
        if faults:
            unreached[screen.name] = faults
    assert unreached == {}


async def _walked(who: Visitor) -> list[str]:
    """Press Tab through the whole page; what it did not reach, and where the focus was not seen."""
    await who.page.evaluate("document.activeElement?.blur()")
    wanted = {str(index) for index in await who.page.evaluate(REACHABLE)}
    unseen: list[str] = []
    for _ in range(len(wanted) + 3):
        await who.page.keyboard.press("Tab")
        focused = await who.page.evaluate(FOCUSED)
        if focused is None:
            continue
        wanted.discard(focused["reach"])
        if not focused["seen"]:
            unseen.append(f"not seen: {focused['name']}")
    missing = [
        await who.page.evaluate(f"document.querySelector('[data-reach=\"{one}\"]')?.outerHTML.slice(0, 160)")
        for one in sorted(wanted)
    ]
    return [*(GONE if one is None else f"not reached: {one}" for one in missing), *unseen]
