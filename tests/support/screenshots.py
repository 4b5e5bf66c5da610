"""`make screenshots`: a picture of every screen and moment, light and dark, wide and narrow, in data/screenshots.

With `ARGS="dashboard invite"` it takes only these pictures and keeps the others. The names are those in
`tests/system/browser/screens.py` and `tests/support/moments.py`.
"""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from playwright.async_api import Browser, BrowserContext, Page, async_playwright

from tests.conftest import ROOT, temporary_dir
from tests.support.moments import Moment, moments, stage
from tests.support.product import SWEEP_SECONDS, Product, running
from tests.system.browser.conftest import ARGUMENTS
from tests.system.browser.screens import GUILD, Screen, for_members, for_visitors, settled
from tests.system.whole.people import Person, until

WIDTHS = (1440, 768, 360)
MOMENTS_WIDTHS = (1440, 360)
THEMES = ("light", "dark")
PICTURES = ROOT / "data" / "screenshots"

S = TypeVar("S", Screen, Moment)


def populate(product: Product) -> tuple[Person, int]:
    """Fill ada's server with rules in two states and a member with a role; return ada and the server's id."""
    ada = Person(product, "ada")
    server_id = int(ada.server(GUILD)["internalId"])
    collections = product.world()["chains"]["base"]["collections"]
    held = next(one for one in collections if one["standard"] == "ERC721Enumerable")
    ada.post("/api/collection/parse", input=held["contract"], blockchain="base")
    colors = {role["name"]: f"#{role['color']:06X}" for role in product.guild(GUILD)["roles"]}
    for name, role, least, shadow in (
        (held["name"], "Collector", 1, False),
        (f"{held['name']} by the dozen", "Whale", 12, False),
        ("An idea", "Holder", 2, True),
    ):
        payload = {
            "ruleName": name, "contractAddress": held["contract"], "blockchain": "base", "verificationType": "basic",
            "minTokens": least, "roleId": product.role(GUILD, role), "serverId": server_id, "shadow": shadow,
            "roleColor": colors[role],
        }  # fmt: skip
        ada.post("/api/verification-rules", **payload)
    carol = Person(product, "carol")
    product.control(
        "chains/base/mint", {"contract": held["contract"], "token_id": "9001", "to": product.wallet("carol")}
    )
    carol.prove()
    ada.prove()
    until(lambda: "Collector" in product.roles_of(GUILD, "carol"))
    return ada, server_id


async def draw(browser: Browser, context: BrowserContext, product: Product, screens: list[Screen]) -> None:
    """Take a picture of each screen in each theme and width."""
    page = await context.new_page()
    for screen in screens:
        await page.goto(product.url + screen.path)
        await settled(page, screen)
        await drawn(page)
        for theme in THEMES:
            await page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            for width in WIDTHS:
                await page.set_viewport_size({"width": width, "height": 900})
                await page.screenshot(path=PICTURES / f"{screen.name}-{theme}-{width}.png", full_page=True)
        print(screen.name, flush=True)


async def drawn(page: Page) -> None:
    """Wait until no placeholder of unloaded content is visible."""
    await page.wait_for_function(
        "() => ![...document.querySelectorAll('main .skeleton')].some(one => one.checkVisibility())"
    )


async def catch(context: BrowserContext, product: Product, moment: Moment) -> None:
    """Take pictures of one moment, which is reached again for each theme and width."""
    for theme in THEMES:
        for width in MOMENTS_WIDTHS:
            page = await context.new_page()
            await page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            await page.set_viewport_size({"width": width, "height": 900})
            await page.goto(product.url + moment.path)
            await page.get_by_role("heading", level=1).first.wait_for()
            await drawn(page)
            await moment.reach(page)
            await drawn(page)
            await page.screenshot(path=PICTURES / f"{moment.name}-{theme}-{width}.png", full_page=moment.whole)
            await page.close()
    print(moment.name, flush=True)


async def signed_in(browser: Browser, product: Product, person: Person) -> BrowserContext:
    """Return a browser context in which this person is signed in."""
    session_id = next(iter(person.client.cookies.values()))
    context = await browser.new_context()
    await context.add_cookies([{"name": "hf_session", "value": session_id, "url": product.url, "httpOnly": True}])
    return context


async def photograph(product: Product, ada: Person, server_id: int, wanted: set[str]) -> None:
    """Take pictures of the visitors' and members' screens and of the moments, or only of those in `wanted`."""

    def chosen(screens: Sequence[S]) -> list[S]:
        return [screen for screen in screens if not wanted or screen.name in wanted]

    executable = (ROOT / "data" / "tools" / "browser").read_text().strip()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=executable, args=list(ARGUMENTS))
        await draw(browser, await browser.new_context(), product, chosen(for_visitors()))
        await draw(browser, await signed_in(browser, product, ada), product, chosen(for_members(product, server_id)))
        cast = await asyncio.to_thread(stage, product, ada)
        contexts = {name: await signed_in(browser, product, person) for name, person in cast.items()}
        for moment in chosen(moments(product, cast)):
            await catch(contexts[moment.who], product, moment)
        await browser.close()


def main(wanted: set[str]) -> int:
    """Start a separate product, fill it and take the pictures."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    for old in PICTURES.glob("*.png"):
        if not wanted or old.name.rsplit("-", 2)[0] in wanted:
            old.unlink()
    with temporary_dir() as directory, running(directory, SWEEP_SECONDS) as machine:
        ada, server_id = populate(machine.product)
        asyncio.run(photograph(machine.product, ada, server_id, wanted))
    print(f"{len(list(PICTURES.glob('*.png')))} pictures in {PICTURES.relative_to(Path.cwd())}")
    return 0


if __name__ == "__main__":
    sys.exit(main(set(sys.argv[1:])))
