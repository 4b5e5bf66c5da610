"""`make screenshots`: a picture of every screen, light and dark, wide and narrow, in data/screenshots.

With `ARGS="dashboard invite"` only of those, named as in `tests/browser/screens.py`; the others' stay as they were.
"""

import asyncio
import sys
from pathlib import Path

from playwright.async_api import Browser, BrowserContext, async_playwright

from tests.browser.conftest import ARGUMENTS
from tests.browser.screens import GUILD, Screen, for_members, for_visitors, settled
from tests.conftest import ROOT, temporary_dir
from tests.product import SWEEP_SECONDS, Product, running
from tests.whole.people import Person, until

WIDTHS = (1440, 768, 360)
THEMES = ("light", "dark")
PICTURES = ROOT / "data" / "screenshots"


def populate(product: Product) -> tuple[Person, int]:
    """Ada, with a server that is in use (rules in two states, a member with a role), and the id of that server."""
    ada = Person(product, "ada")
    server_id = int(ada.server(GUILD)["internalId"])
    collections = product.world()["chains"]["base"]["collections"]
    held = next(one for one in collections if one["standard"] == "ERC721Enumerable")
    ada.post("/api/collection/parse", input=held["contract"], blockchain="base")
    for name, role, least, shadow in (
        (held["name"], "Collector", 1, False),
        (f"{held['name']} by the dozen", "Whale", 12, False),
        ("An idea", "Holder", 2, True),
    ):
        payload = {
            "ruleName": name, "contractAddress": held["contract"], "blockchain": "base", "verificationType": "basic",
            "minTokens": least, "roleId": product.role(GUILD, role), "serverId": server_id, "shadow": shadow,
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
    """Each screen in each theme and width."""
    page = await context.new_page()
    for screen in screens:
        await page.goto(product.url + screen.path)
        await settled(page, screen)
        for theme in THEMES:
            await page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            for width in WIDTHS:
                await page.set_viewport_size({"width": width, "height": 900})
                await page.screenshot(path=PICTURES / f"{screen.name}-{theme}-{width}.png", full_page=True)
        print(screen.name, flush=True)


async def photograph(product: Product, session_id: str, server_id: int, wanted: set[str]) -> None:
    """Both audiences' screens, or those of them that are wanted."""

    def chosen(screens: list[Screen]) -> list[Screen]:
        return [screen for screen in screens if not wanted or screen.name in wanted]

    executable = (ROOT / "data" / "tools" / "browser").read_text().strip()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=executable, args=list(ARGUMENTS))
        await draw(browser, await browser.new_context(), product, chosen(for_visitors()))
        member = await browser.new_context()
        await member.add_cookies([{"name": "hf_session", "value": session_id, "url": product.url, "httpOnly": True}])
        await draw(browser, member, product, chosen(for_members(product, server_id)))
        await browser.close()


def main(wanted: set[str]) -> int:
    """Start a product of its own, fill it and take the pictures."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    for old in PICTURES.glob("*.png"):
        if not wanted or old.name.rsplit("-", 2)[0] in wanted:
            old.unlink()
    with temporary_dir() as directory, running(directory, SWEEP_SECONDS) as machine:
        ada, server_id = populate(machine.product)
        session_id = next(iter(ada.client.cookies.values()))
        asyncio.run(photograph(machine.product, session_id, server_id, wanted))
    print(f"{len(list(PICTURES.glob('*.png')))} pictures in {PICTURES.relative_to(Path.cwd())}")
    return 0


if __name__ == "__main__":
    sys.exit(main(set(sys.argv[1:])))
