"""A first visit: little to load, a title and a description for each page, and the preview that links show."""

import re
import struct
from collections.abc import Awaitable, Callable
from xml.etree import ElementTree

import httpx
import pytest
from playwright.async_api import Response, expect

from app.pages import OPERATOR_PAGES, PAGES, PUBLIC_PAGES
from locales import LANGUAGES, _, own_name, speaking
from tests.system.browser.barriers import OF_COLOURS, grave_faults
from tests.system.browser.conftest import Product, Visitor

NewVisitor = Callable[..., Awaitable[Visitor]]

SCRIPT_BYTES, STYLE_BYTES = 190 * 1024, 25 * 1024
"""The most that the landing page may load of each, compressed."""


@pytest.mark.parametrize("language", ["en-US", "ja"])
async def test_the_landing_page_is_light(visit: NewVisitor, language: str) -> None:
    visitor = await visit(locale=language)
    answers: list[Response] = []
    visitor.page.on("response", lambda answer: answers.append(answer))
    await visitor.open("/")
    await visitor.page.wait_for_load_state("networkidle")
    loaded = {"script": 0, "stylesheet": 0}
    for answer in answers:
        if answer.request.resource_type in loaded:
            loaded[answer.request.resource_type] += (await answer.request.sizes())["responseBodySize"]
    assert 0 < loaded["script"] <= SCRIPT_BYTES
    assert 0 < loaded["stylesheet"] <= STYLE_BYTES


async def test_a_visitor_reads_and_chooses_a_language(visit: NewVisitor) -> None:
    visitor = await visit(locale="pt-BR", viewport={"width": 360, "height": 800})
    page = visitor.page
    await visitor.open("/?from=a-link")
    for language in ("pt-BR", *(one for one in LANGUAGES if one != "pt-BR")):
        with speaking(language):
            lead = _("Roles that hold as long as the NFT does")
        if language != "pt-BR":
            # The links work before any script runs, and lead back to the same address.
            await page.get_by_role("contentinfo").get_by_role("link", name=own_name(language), exact=True).click()
        await expect(page.get_by_role("heading", level=1, name=lead)).to_be_visible()
        await expect(page).to_have_title(re.compile(f"^{lead} · "))
        # The scripts of the page say the same.
        await page.locator("html[lang='" + language + "']").wait_for(state="attached")
        await page.wait_for_load_state("networkidle")
        await expect(page.get_by_role("heading", level=1, name=lead)).to_be_visible()
        assert await page.evaluate("document.documentElement.scrollWidth") <= 360, language
        # No word changes a colour.
        assert await grave_faults(page, *(() if language == "pt-BR" else OF_COLOURS[:1])) == [], language
        assert page.url.endswith("/?from=a-link")


async def test_each_page_has_a_title_and_a_description_of_its_own(product: Product) -> None:
    titles: dict[str, str] = {}
    async with httpx.AsyncClient(base_url=product.url) as visitor:
        for page in (*PUBLIC_PAGES, *OPERATOR_PAGES):
            html = (await visitor.get(page.route)).text
            assert f"<title>{page.full_title}</title>" in html
            description = re.search(r'<meta content="([^"]+)" name="description"/>', html)
            assert description is not None, page.route
            assert 40 <= len(description[1]) <= 200, page.route
            titles[page.title] = description[1]
            picture = re.search(r'<meta content="([^"]+)" property="og:image"/>', html)
            assert picture is not None
            assert picture[1] == f"{product.url}/social.png"
    assert len(titles) == len(set(titles.values())) == len(PUBLIC_PAGES) + len(OPERATOR_PAGES)
    assert all(page.title for page in PAGES if page.route != "404")


async def test_pictures_and_the_map_of_the_site_are_there(product: Product) -> None:
    async with httpx.AsyncClient(base_url=product.url) as visitor:
        social = await visitor.get("/social.png")
        assert social.headers["content-type"] == "image/png"
        assert struct.unpack(">II", social.content[16:24]) == (1200, 630)
        icon = await visitor.get("/favicon.ico")
        assert (icon.status_code, icon.content[:4]) == (200, b"\0\0\1\0")
        robots = (await visitor.get("/robots.txt")).text
        assert f"Sitemap: {product.url}/sitemap.xml" in robots
        places = ElementTree.fromstring((await visitor.get("/sitemap.xml")).text).iter()
        listed = [place.text or "" for place in places if place.tag.endswith("}loc")]
        assert listed[0] == f"{product.url}/"
        assert {"/features", "/help-center", "/login"} <= {place.removeprefix(product.url) for place in listed}
        for place in listed:
            assert (await visitor.get(place)).status_code == 200, place


async def test_scripts_are_fetched_after_what_is_needed_to_read_the_page(product: Product) -> None:
    async with httpx.AsyncClient(base_url=product.url) as visitor:
        html = (await visitor.get("/")).text
    ahead = re.findall(r"<link[^>]*rel=\"modulepreload\"[^>]*>", html)
    assert ahead
    assert all('fetchpriority="low"' in link for link in ahead)


async def test_a_screen_brings_its_own_parts_when_it_is_opened(product: Product) -> None:
    parts: dict[str, set[str]] = {}
    async with httpx.AsyncClient(base_url=product.url) as visitor:
        for path in ("/", "/server-config", "/test-auth"):
            parts[path] = set(re.findall(r'modulepreload"[^>]* href="/assets/([^"]+)"', (await visitor.get(path)).text))
    for path in ("/server-config", "/test-auth"):
        own = [part for part in parts[path] - parts["/"] if part.startswith(f"_{path.strip('/')}")]
        assert own, parts[path]
        assert not [part for part in parts["/"] if path.strip("/") in part]
