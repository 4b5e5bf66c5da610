"""Films docs/pictures/demo.webp in the real product beside the sandbox: `make demo`.

An admin writes a rule, a member proves a wallet and gets the role, and loses it with the token. Each picture is also
saved in data/demo.
"""

import asyncio
import base64
import struct
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from playwright.async_api import Browser, Locator, Page, async_playwright, expect

from tests.conftest import ROOT, temporary_dir
from tests.support.product import DAY, Product, running
from tests.support.screenshots import drawn, signed_in
from tests.system.browser.conftest import ARGUMENTS
from tests.system.browser.screens import GUILD
from tests.system.whole.people import Person, until

MADE = ROOT / "docs" / "pictures" / "demo.webp"
SINGLE = ROOT / "data" / "demo"
WIDTH, HEIGHT, BAR = 1080, 720, 58
QUALITY = 0.8
MOST_BYTES = 1_500_000
ROLE, CHAIN = "Collector", "base"
RULE = "An admin writes a rule: one Driftwood Bear gives the role Collector."
PROOF = "A member proves a wallet with a code in its bio. No wallet is connected."
GIVEN = "The bot gives the role."
SOLD = "The token is sold, and the role is taken. The log says why."
DRAW = """
async ([png, caption, width, height, bar, quality]) => {
  await document.fonts.load('600 25px Figtree');
  const picture = new Image();
  picture.src = 'data:image/png;base64,' + png;
  await picture.decode();
  const canvas = document.createElement('canvas');
  canvas.width = width; canvas.height = height + bar;
  const ink = canvas.getContext('2d');
  ink.drawImage(picture, 0, 0, width, height);
  ink.fillStyle = '#123f36'; ink.fillRect(0, height, width, bar);
  ink.fillStyle = '#f7fdf9'; ink.font = '600 25px Figtree';
  ink.textAlign = 'center'; ink.textBaseline = 'middle';
  ink.fillText(caption, width / 2, height + bar / 2 + 1);
  return [canvas.toDataURL('image/webp', quality), canvas.toDataURL('image/png')].map(one => one.split(',')[1]);
}
"""


@dataclass(frozen=True)
class Frame:
    """A screen, the sentence below it, and for how many milliseconds both are shown."""

    png: bytes
    caption: str
    milliseconds: int


class Film:
    """The frames in their order."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []

    async def shoot(self, page: Page, caption: str, milliseconds: int = 1500) -> None:
        """Add what the page shows now, once nothing in it is still to come."""
        await drawn(page)
        self.frames.append(Frame(await page.screenshot(animations="disabled"), caption, milliseconds))


async def centre(place: Locator) -> None:
    """Scroll a place to the middle of the window, once it is there."""
    await expect(place).to_be_visible()
    await place.evaluate("place => place.scrollIntoView({block: 'center'})")


async def write_rule(film: Film, page: Page, product: Product, contract: str, path: str) -> None:
    """Write a rule by clicks."""
    await page.goto(product.url + path)
    await page.get_by_label("Blockchain").select_option(CHAIN)
    await expect(page.get_by_label("Blockchain")).to_have_value(CHAIN)
    await film.shoot(page, RULE, 1000)
    await page.get_by_label("Contract Address").fill(contract)
    await expect(page.get_by_label("Rule Name", exact=True)).not_to_have_value("")
    await film.shoot(page, RULE)
    role = page.get_by_label("Role", exact=True)
    await role.select_option(ROLE)
    await centre(role)
    await film.shoot(page, RULE)
    await page.get_by_role("button", name="Create Rule").click()
    await expect(page.get_by_text("Verification rule created successfully!")).to_be_visible()
    await expect(page.get_by_role("listitem").filter(has_text=ROLE)).to_be_visible()


async def prove_wallet(film: Film, page: Page, product: Product, address: str) -> None:
    """Prove a wallet by clicks, on the product's page and on the marketplace's."""
    await page.goto(f"{product.url}/wallet-verification")
    await page.get_by_label("Wallet Address").fill(address)
    code = page.locator("code").filter(has_text="holdfast-").first
    await expect(code).to_be_visible()
    await centre(code)
    await film.shoot(page, PROOF, 2200)
    async with page.context.expect_page() as opened:
        await page.get_by_role("button", name="Open OpenSea Profile").click()
    profile = await opened.value
    await profile.set_viewport_size({"width": WIDTH, "height": HEIGHT})
    await profile.get_by_label("Bio").fill(f"Collector of tides. {await code.inner_text()}")
    await film.shoot(profile, PROOF)
    await profile.get_by_role("button", name="Save").click()
    await profile.get_by_text("Your bio is saved.").wait_for()
    await profile.close()
    await page.get_by_role("button", name="Verify Wallet").click()
    await expect(page.get_by_text("Your wallet has been successfully verified!")).to_be_visible()
    await centre(page.get_by_text(f"{address[:6]}...{address[-4:]}").first)
    await film.shoot(page, PROOF, 2200)


async def film_all(browser: Browser, product: Product) -> Film:
    """Play the story and return its frames."""
    film, ada, carol = Film(), Person(product, "ada"), Person(product, "carol")
    collections = product.world()["chains"][CHAIN]["collections"]
    bears = next(one["contract"] for one in collections if one["name"] == "Driftwood Bears")
    wallet = product.wallet("carol")
    nft = {"contract": bears, "token_id": "4"}  # the only one that carol has
    server = ada.server(GUILD)
    query = {"serverId": server["internalId"], "discordServerId": server["id"], "serverName": GUILD}
    pages: dict[str, Page] = {}
    for person in (ada, carol):
        context = await signed_in(browser, product, person)
        pages[person.username] = await context.new_page()
        await pages[person.username].set_viewport_size({"width": WIDTH, "height": HEIGHT})
        await pages[person.username].emulate_media(color_scheme="light", reduced_motion="reduce")
    page, console = pages["ada"], await pages["carol"].context.new_page()
    await console.set_viewport_size({"width": WIDTH, "height": HEIGHT})

    def tab(name: str) -> str:
        return f"{product.url}/server-config?{urlencode({**query, 'tab': name})}"

    await write_rule(film, page, product, bears, f"/add-verification-rule?{urlencode({**query, 'tab': 'rules'})}")
    await page.goto(tab("rules"))
    await page.get_by_role("button", name="Hide").click()  # the list of first steps
    await centre(page.get_by_role("listitem").filter(has_text=ROLE).first)
    await film.shoot(page, RULE, 2000)
    await prove_wallet(film, pages["carol"], product, wallet)
    await asyncio.to_thread(until, lambda: ROLE in product.roles_of(GUILD, "carol"))
    await console.goto(f"{product.sandbox}/console?as=carol&guild={server['id']}")
    await expect(console.get_by_text(ROLE, exact=True).first).to_be_visible()
    await film.shoot(console, GIVEN, 2000)
    product.control(f"chains/{CHAIN}/transfer", {**nft, "from": wallet, "to": product.wallet("dave")})
    await asyncio.to_thread(until, lambda: ROLE not in product.roles_of(GUILD, "carol"))
    await page.goto(tab("activity"))
    await centre(page.get_by_role("listitem").filter(has_text=ROLE).filter(has_text="carol").first)
    await film.shoot(page, SOLD, 3200)
    return film


async def develop(browser: Browser, frames: Sequence[Frame]) -> list[bytes]:
    """Return each frame with its sentence as a WebP of one picture; save it as PNG too."""
    font = base64.b64encode((ROOT / "assets" / "fonts" / "figtree.woff2").read_bytes()).decode()
    page = await browser.new_page()
    style = f"@font-face {{ font-family: Figtree; font-weight: 300 900; src: url(data:font/woff2;base64,{font}); }}"
    await page.set_content(f"<style>{style}</style>")
    made: list[bytes] = []
    for number, frame in enumerate(frames):
        drawing = [base64.b64encode(frame.png).decode(), frame.caption, WIDTH, HEIGHT, BAR, QUALITY]
        webp, png = await page.evaluate(DRAW, drawing)
        made.append(base64.b64decode(webp))
        (SINGLE / f"{number:02}.png").write_bytes(base64.b64decode(png))
    return made


def animated(pictures: Sequence[bytes], milliseconds: Sequence[int], width: int, height: int) -> bytes:
    """Put WebP pictures of one size into one file that shows them again and again.

    The container is that of https://developers.google.com/speed/webp/docs/riff_container.
    """
    size = _number(width - 1, 3) + _number(height - 1, 3)
    chunks = [_chunk(b"VP8X", bytes([2, 0, 0, 0]) + size), _chunk(b"ANIM", b"\xff\xff\xff\xff" + _number(0, 2))]
    for picture, shown in zip(pictures, milliseconds, strict=True):
        place = _number(0, 3) + _number(0, 3)
        chunks.append(_chunk(b"ANMF", place + size + _number(shown, 3) + b"\x02" + _only_pixels(picture)))
    body = b"WEBP" + b"".join(chunks)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def _only_pixels(picture: bytes) -> bytes:
    """Return the chunk with the pixels of a WebP of one picture."""
    assert picture[:4] == b"RIFF"
    at = 12
    while at < len(picture):
        name, length = picture[at : at + 4], struct.unpack_from("<I", picture, at + 4)[0]
        if name in {b"VP8 ", b"VP8L"}:
            return picture[at : at + 8 + length + length % 2]
        at += 8 + length + length % 2
    raise ValueError("This WebP has no pixels.")


def _chunk(name: bytes, body: bytes) -> bytes:
    return name + struct.pack("<I", len(body)) + body + b"\0" * (len(body) % 2)


def _number(value: int, size: int) -> bytes:
    return value.to_bytes(size, "little")


async def make(product: Product) -> None:
    """Film the story and write the picture."""
    executable = (ROOT / "data" / "tools" / "browser").read_text().strip()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=executable, args=list(ARGUMENTS))
        film = await film_all(browser, product)
        pictures = await develop(browser, film.frames)
        await browser.close()
    shown = [frame.milliseconds for frame in film.frames]
    MADE.write_bytes(animated(pictures, shown, WIDTH, HEIGHT + BAR))


def main() -> int:
    """Start a product of its own and film it. Return 1 if the picture is too large for a README."""
    SINGLE.mkdir(parents=True, exist_ok=True)
    for old in SINGLE.glob("*.png"):
        old.unlink()
    with temporary_dir() as directory, running(directory, DAY) as machine:
        asyncio.run(make(machine.product))
    size = MADE.stat().st_size
    print(f"{MADE.relative_to(Path.cwd())} has {size} bytes.")
    return 0 if size <= MOST_BYTES else 1


if __name__ == "__main__":
    sys.exit(main())
