"""Draws assets/social.png and assets/favicon.ico from the mark and the fonts: `python docs/pictures/draw_brand.py`."""

import asyncio
import shutil
import struct
from pathlib import Path

from playwright.async_api import Browser, async_playwright

ROOT = Path(__file__).resolve().parents[2]
ASSETS = ROOT / "assets"
SIZES = (16, 32, 48)
SOCIAL = f"""
<style>
  @font-face {{ font-family: Bricolage; font-weight: 200 800;
                src: url("{(ASSETS / "fonts/bricolage-grotesque.woff2").as_uri()}"); }}
  @font-face {{ font-family: Figtree; font-weight: 300 900; src: url("{(ASSETS / "fonts/figtree.woff2").as_uri()}"); }}
  body {{ margin: 0; width: 1200px; height: 630px; box-sizing: border-box; padding: 76px 84px; color: #f7fdf9;
          background: radial-gradient(900px 520px at 88% 4%, #2c8069, transparent 70%), #123f36;
          display: flex; flex-direction: column; justify-content: space-between; font-family: Figtree; }}
  .name {{ display: flex; align-items: center; gap: 22px; font: 700 46px Bricolage; letter-spacing: -0.015em; }}
  .name img {{ width: 76px; border-radius: 19px; box-shadow: 0 0 0 2px #ffffff2b; }}
  h1 {{ font: 700 92px/1.06 Bricolage; letter-spacing: -0.025em; margin: 0; max-width: 960px; }}
  p {{ font-size: 34px; margin: 0; color: #c9e6da; }}
</style>
<div class="name"><img src="{(ASSETS / "favicon.svg").as_uri()}">Holdfast</div>
<h1>Roles that hold as long as the NFT does</h1>
<p>Token-gated Discord roles. No wallet is ever connected.</p>
"""


async def _picture(browser: Browser, html: str, width: int, height: int) -> bytes:
    page = await browser.new_page(viewport={"width": width, "height": height})
    scratch = ROOT / "data" / "brand.html"
    scratch.parent.mkdir(exist_ok=True)
    scratch.write_text(f"<!doctype html><meta charset=utf-8>{html}")
    await page.goto(scratch.as_uri())
    await page.evaluate("document.fonts.ready")
    taken = await page.screenshot(omit_background=True)
    await page.close()
    scratch.unlink()
    return taken


def _icon(pictures: dict[int, bytes]) -> bytes:
    """Return an .ico file that contains PNGs, by their widths."""
    head, body = struct.pack("<HHH", 0, 1, len(pictures)), b""
    start = len(head) + 16 * len(pictures)
    for size, png in pictures.items():
        head += struct.pack("<BBBBHHII", size, size, 0, 0, 1, 32, len(png), start + len(body))
        body += png
    return head + body


async def main() -> None:
    """Draw both."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        (ASSETS / "social.png").write_bytes(await _picture(browser, SOCIAL, 1200, 630))
        mark = (
            f'<body style="margin:0"><img src="{(ASSETS / "favicon.svg").as_uri()}" style="width:100vw;display:block">'
        )
        icons = {size: await _picture(browser, mark, size, size) for size in SIZES}
        (ASSETS / "favicon.ico").write_bytes(_icon(icons))
        await browser.close()


if __name__ == "__main__":
    asyncio.run(main())
