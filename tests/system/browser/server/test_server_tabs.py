"""The tabs of a server: their places and sides, and Health, Verification channel and Developers by clicks."""

import asyncio
import hashlib
import hmac
from collections.abc import Awaitable, Callable
from contextlib import closing
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

import pytest
from aiohttp import web
from playwright.async_api import Locator, expect

from tests.gateways.wire import wire
from tests.system.browser.conftest import EVENTUALLY_SECONDS, Product, Visitor, shown_or_tried_again
from tests.system.browser.village import Village, village
from tests.system.whole.people import Person, collection, rule

NewVisitor = Callable[..., Awaitable[Visitor]]


@pytest.fixture(scope="module")
def here(product: Product) -> Village:
    """The guild of the tests that leave its rules and its channels as they are."""
    return village(product, "owner")


# Elements that moved after they were first drawn, by the id of the nearest ancestor that has one.
MOVED = """
() => {
  window.moved = [];
  new PerformanceObserver(list => list.getEntries().forEach(entry => entry.sources.forEach(source =>
    window.moved.push(source.node?.closest?.('[id]')?.id)))).observe({type: 'layout-shift', buffered: false});
}
"""

# Where the text itself begins, and not the box around it: of several lines, where the shortest one begins.
TEXT_BEGINS = """
element => {
  const text = document.createRange();
  text.selectNodeContents(element);
  const begins = {};
  for (const part of text.getClientRects()) {
    begins[part.bottom] = Math.min(part.left, begins[part.bottom] ?? Infinity);
  }
  return Math.max(...Object.values(begins));
}
"""
MIDDLE = "element => { const box = element.getBoundingClientRect(); return box.top + box.height / 2; }"
BOX_BEGINS = "element => element.getBoundingClientRect().left"
LINES = "element => element.getBoundingClientRect().height / parseFloat(getComputedStyle(element).lineHeight)"
ARABIC = "محمد عبد الرحمن الطويل"
LONG_ROLE = f"{ARABIC} {ARABIC} {ARABIC}"


async def test_a_new_servers_tabs_stay_where_they_first_appear(here: Village, visit: NewVisitor) -> None:
    visitor = await visit()
    page, name = visitor.page, here.guild
    await visitor.enter(here["owner"])
    await page.evaluate(MOVED)
    await page.get_by_role("listitem").filter(has_text=name).get_by_role("link", name="Configure").click()
    await expect(page.get_by_role("heading", name="First steps")).to_be_visible()
    await expect(page.get_by_role("heading", name="No rules yet")).to_be_visible()
    assert "tabs" not in await page.evaluate("window.moved")
    address = page.url
    await page.get_by_role("link", name="Skip to content").press("Enter")
    await expect(page.get_by_role("main")).to_be_focused()
    await expect(page).to_have_url(address)
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("link", name="Back to Dashboard")).to_be_focused()


async def test_on_a_phone_the_bar_of_tabs_shows_the_open_tab_of_each_visit(here: Village, visit: NewVisitor) -> None:
    visitor = await visit(viewport={"width": 360, "height": 1200})
    page = visitor.page
    await visitor.enter(here["owner"], f"{here.rules}&tab=developers")
    for tab in ("Developers", "Rules", "Move"):
        if tab != "Developers":
            await visitor.open(f"{here.rules}&tab={tab.lower()}")
        await expect(page.locator("#tabs [aria-current=page]")).to_have_text(tab)
        await expect(page.locator("#tabs [aria-current=page]")).to_be_in_viewport(ratio=1)


async def test_on_a_phone_a_tab_that_is_pressed_shows_its_content(product: Product, visit: NewVisitor) -> None:
    """A new server's first steps fill the window above the tabs, and a long word in its name is broken."""
    here = village(product, "owner", called="W" * 40)
    visitor = await visit(viewport={"width": 360, "height": 800})
    page = visitor.page
    await visitor.enter(here["owner"], here.rules)
    await expect(page.get_by_role("heading", name="No rules yet")).to_be_attached()
    assert await page.evaluate("window.scrollY") == 0
    name = page.get_by_role("heading", level=1)
    assert await name.evaluate("one => one.getBoundingClientRect().right <= window.innerWidth")
    bar = page.get_by_role("navigation", name="Server configuration")
    await expect(bar).not_to_be_in_viewport()
    await page.get_by_role("link", name="Open the tab").click()
    await expect(page.get_by_role("heading", name="No verification channel yet")).to_be_in_viewport()
    await expect(bar).to_be_in_viewport()
    await page.get_by_role("link", name="Health").click()
    await expect(page.get_by_role("heading", name="This server")).to_be_visible()
    await expect(bar).to_be_in_viewport()
    assert await bar.evaluate("one => one.getBoundingClientRect().top < window.innerHeight / 2")


async def test_on_the_narrowest_phone_buttons_and_steps_align_with_the_heading(
    product: Product, visit: NewVisitor
) -> None:
    """Spanish is longer than English: the second button wraps to a line of its own."""
    here = village(product, "owner")
    visitor = await visit(viewport={"width": 320, "height": 800}, locale="es")
    page = visitor.page
    await visitor.enter(here["owner"], here.rules)
    heading = page.get_by_role("heading", level=1, name=here.guild)
    add = page.get_by_role("link", name="Añadir regla").first
    assert await add.evaluate(BOX_BEGINS) == await heading.evaluate(BOX_BEGINS)
    steps = page.get_by_role("region", name="Primeros pasos").get_by_role("listitem")
    await expect(steps).to_have_count(5)
    for step in await steps.all():
        mark, title = step.locator("svg").first, step.get_by_role("heading")
        assert await mark.evaluate(BOX_BEGINS) < await title.evaluate(BOX_BEGINS), "the mark has no line of its own"
    await visitor.follow(here.form)
    heading = page.get_by_role("heading", level=1, name="Añadir regla de verificación")
    begins = await heading.evaluate(BOX_BEGINS)
    back = page.get_by_role("main").get_by_role("link", name="Volver", exact=True)
    assert await back.locator("svg").evaluate(BOX_BEGINS) == begins + 1, "beside its border of 1 px"


async def test_an_open_health_tab_shows_a_kicked_bot_and_its_return(product: Product, visit: NewVisitor) -> None:
    here = village(product, "owner")
    visitor = await visit()
    page, name = visitor.page, here.guild
    await visitor.enter(here["owner"], f"{here.rules}&tab=health")
    await expect(page.get_by_text("The bot is in this server and listens.")).to_be_visible()
    await expect(page.get_by_text("The bot has every permission that it needs.")).to_be_visible()
    product.control("guilds", {"action": "kick_bot", "guild": name})
    await expect(page.get_by_text("The bot is not in this server, so no role can be given")).to_be_visible()
    await expect(page.get_by_role("status").get_by_text("There is a problem")).to_be_visible()
    await expect(page.get_by_text("Invite it from the dashboard")).to_be_visible()
    product.control("guilds", {"action": "add_bot", "guild": name})
    await expect(page.get_by_text("The bot is in this server and listens.")).to_be_visible()


async def test_an_open_rule_form_shows_that_the_bot_is_away_and_its_return(product: Product, visit: NewVisitor) -> None:
    here = village(product, "owner")
    visitor = await visit()
    page = visitor.page
    await visitor.enter(here["owner"], here.rules)
    product.control("guilds", {"action": "kick_bot", "guild": here.guild})
    away = page.get_by_role("alert").filter(has_text="is not in this server, so no role can be given")
    await expect(away).to_be_visible()
    await visitor.follow(here.form)
    await expect(page.get_by_role("heading", name="Add Verification Rule")).to_be_visible()
    await expect(away.get_by_role("button", name="Invite Bot")).to_be_visible()
    await page.get_by_label("Minimum Tokens").fill("7")
    product.control("guilds", {"action": "add_bot", "guild": here.guild})
    await expect(away).to_be_hidden()
    await page.get_by_label("Role", exact=True).select_option(label="Holder")
    await expect(page.get_by_label("Minimum Tokens")).to_have_value("7")


async def test_the_open_tab_and_the_focus_are_seen_in_any_colours(here: Village, visit: NewVisitor) -> None:
    visitor = await visit(forced_colors="active")
    page, name = visitor.page, here.guild
    await visitor.enter(here["owner"])
    chosen, other = (page.get_by_role("button", name=f"{days} days") for days in (30, 7))
    style = "(one, name) => getComputedStyle(one)[name]"
    assert await chosen.evaluate(style, "backgroundColor") != await other.evaluate(style, "backgroundColor")
    await page.get_by_role("listitem").filter(has_text=name).get_by_role("link", name="Configure").click()
    tabs = page.get_by_role("navigation", name="Server configuration")
    opened, health = (tabs.get_by_role("link", name=tab, exact=True) for tab in ("Rules", "Health"))
    assert await opened.evaluate(style, "backgroundColor") != await health.evaluate(style, "backgroundColor")
    # The bar is as high as its tabs, and cuts a ring around them.
    await health.focus()
    assert await health.evaluate(style, "outlineOffset") == "-3px"


async def test_the_channel_is_made_its_loss_is_noticed_and_alerts_get_a_place(
    product: Product, visit: NewVisitor
) -> None:
    here = village(product, "owner")
    visitor = await visit()
    page, name = visitor.page, here.guild
    await visitor.enter(here["owner"], f"{here.rules}&tab=channel")
    create = page.get_by_role("button", name="Create channel").first
    # On a busy machine Discord's first answer can come too late to be shown.
    await shown_or_tried_again(page, create)
    await create.click()
    await expect(page.get_by_text("is there, its panel is up to date")).to_be_visible()
    channel = next(one for one in product.guild(name)["channels"] if one["name"] == "verify")
    labels = [one["label"] for one in channel["messages"][0]["components"][0]["components"]]
    assert labels == ["Verify", "My roles", "Re-check"]

    preview = page.get_by_role("figure", name="The panel as Discord will show it")
    await page.get_by_label("Title").fill("Welcome to {server}")
    await page.get_by_label("Text", exact=True).fill("Press **{button}**.\n- _quick_\n- {nobody}")
    await expect(page.get_by_text("{nobody} is not a placeholder.")).to_be_visible()
    await page.get_by_label("Text", exact=True).fill("Press **{button}**.\n- _quick_")
    await page.get_by_label("Button label").fill("Start")
    await expect(preview.get_by_text(f"Welcome to {name}")).to_be_visible()
    await expect(preview.locator(".font-bold").get_by_text("Start", exact=True)).to_be_visible()
    await expect(preview.locator(".italic").get_by_text("quick", exact=True)).to_be_visible()
    await page.get_by_role("button", name="Save panel").click()
    await expect(page.get_by_text("#verify shows it now.")).to_be_visible()
    panel = next(one for one in product.guild(name)["channels"] if one["name"] == "verify")["messages"][0]
    assert panel["embeds"][0]["title"] == f"Welcome to {name}"
    assert panel["embeds"][0]["description"] == "Press **Start**.\n- _quick_"
    assert panel["components"][0]["components"][0]["label"] == "Start"
    await page.get_by_label("Language").select_option("ja")
    await expect(preview.get_by_text("マイロール")).to_be_visible()
    await expect(preview.get_by_text(f"Welcome to {name}")).to_be_visible()

    await page.get_by_label("Post alerts in").select_option("#verify")
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_text("They are posted in #verify from now on.")).to_be_visible()
    posted = next(one for one in product.guild(name)["channels"] if one["name"] == "verify")["messages"]
    assert posted[-1]["embeds"][0]["title"] == "Alerts arrive here"


async def test_a_webhook_is_set_and_tested_and_a_token_made_and_revoked(here: Village, visit: NewVisitor) -> None:
    visitor = await visit()
    page = visitor.page
    await visitor.enter(here["owner"], f"{here.rules}&tab=developers")
    await page.get_by_role("button", name="Set a webhook").click()
    async with wire() as receiver:
        receiver.says(web.Response(status=204))
        await page.get_by_label("Address of your program").fill(f"{receiver.url}/in")
        await page.get_by_role("button", name="Save webhook").click()
        secret = (await page.get_by_text("whsec_").inner_text()).strip()
        await page.get_by_role("button", name="Send a test event").click()
        at = urljoin(page.url, f"/api/servers/{parse_qs(urlsplit(page.url).query)['serverId'][0]}/webhook")
        deliveries: list[dict[str, Any]] = []
        async with asyncio.timeout(EVENTUALLY_SECONDS):
            while not deliveries or deliveries[0]["state"] != "delivered":
                await asyncio.sleep(0.2)
                deliveries = (await (await page.request.get(at)).json())["deliveries"]
        await page.get_by_role("button", name="Refresh").click()
        await expect(page.get_by_text("Delivered", exact=True)).to_be_visible()
        [asked] = receiver.asked
    t, signed = asked.headers["Holdfast-Signature"].split(",")
    told = f"{t.removeprefix('t=')}.{asked.body}".encode()
    assert signed == f"v1={hmac.new(secret.encode(), told, hashlib.sha256).hexdigest()}"
    await page.get_by_role("button", name="I have copied the secret").click()
    await expect(page.get_by_text("whsec_")).to_have_count(0)

    await page.get_by_role("button", name="New token").click()
    await page.get_by_label("Name of the token").fill("nightly report")
    await page.get_by_label("Name of the token").press("Enter")
    await expect(page.get_by_text("Copy the token now. It is shown this once.")).to_be_visible()
    await page.get_by_role("button", name="Revoke the token nightly report").click()
    await page.get_by_role("button", name="Revoke token", exact=True).click()
    await expect(page.get_by_text("No API tokens")).to_be_visible()


async def with_rule(product: Product, here: Village) -> None:
    """Add a rule about a collection of its own, which gives the role Holder."""
    with closing(Person(product, here["owner"])) as owner:
        contract = await asyncio.to_thread(collection, product, here.guild.replace(" ", ""))
        payload = rule(product, contract, here.guild, "Holder", owner.server(here.guild)["internalId"])
        await asyncio.to_thread(lambda: owner.post("/api/verification-rules", **payload))


async def test_a_name_from_the_right_is_on_the_side_of_the_text_around_it(product: Product, visit: NewVisitor) -> None:
    here = village(product, "owner")
    product.control("members", {"guild": here.guild, "user": here["owner"], "action": "rename_nick", "name": ARABIC})
    await with_rule(product, here)
    product.control("guilds", {"guild": here.guild, "action": "edit_role", "role": "Holder", "name": LONG_ROLE})
    visitor = await visit(viewport={"width": 360, "height": 800})
    page = visitor.page
    await visitor.enter(here["owner"], f"{here.rules}&tab=members")
    name, below = page.get_by_text(ARABIC, exact=True), page.get_by_text("No wallet counts here")
    await expect(below).to_be_visible()
    assert abs(await _number(name, TEXT_BEGINS) - await _number(below, TEXT_BEGINS)) < 1

    role = page.get_by_role("listitem").get_by_text(LONG_ROLE, exact=True)
    await visitor.open(here.rules)
    await expect(role).to_be_visible()
    assert await _number(role, LINES) > 1
    assert abs(await _number(role, TEXT_BEGINS) - await _number(role, BOX_BEGINS)) < 1


async def test_an_answer_is_level_with_what_it_is_about(product: Product, visit: NewVisitor) -> None:
    visitor = await visit()
    page = visitor.page
    here = village(product, "owner")
    await with_rule(product, here)
    await visitor.enter(here["owner"], f"{here.rules}&tab=members")
    await page.get_by_role("button", name=here["owner"]).first.click()
    title = page.get_by_role("heading", level=4).first
    answer = page.get_by_text("No", exact=True).first
    await expect(answer).to_be_visible()
    assert abs(await _number(title, MIDDLE) - await _number(answer, MIDDLE)) <= 1


async def test_the_next_first_step_stands_out(product: Product, visit: NewVisitor) -> None:
    here = village(product, "owner")
    visitor = await visit()
    await visitor.enter(here["owner"], here.rules)
    steps = visitor.page.get_by_role("region", name="First steps")
    following, later = steps.get_by_role("link", name="Add Rule"), steps.get_by_role("link", name="Open the tab")
    primary = visitor.page.get_by_role("link", name="Add Rule").first
    await expect(following).to_be_visible()
    color = "element => getComputedStyle(element).backgroundColor"
    assert await following.evaluate(color) == await primary.evaluate(color) != await later.evaluate(color)


async def test_a_first_step_that_is_done_is_ticked_without_waiting_for_the_next_look(
    product: Product, visit: NewVisitor
) -> None:
    here = village(product, "owner")
    visitor = await visit()
    page = visitor.page
    await page.clock.install()
    await visitor.enter(here["owner"], f"{here.rules}&tab=channel")
    create = page.get_by_role("button", name="Create channel").first
    await shown_or_tried_again(page, create)
    await expect(page.get_by_text("2 of 5 done")).to_be_visible()
    await page.clock.pause_at(await page.evaluate("Date.now() / 1000 + 0.1"))
    await create.click()
    await expect(page.get_by_text("3 of 5 done")).to_be_visible()


async def _number(one: Locator, script: str) -> float:
    return float(await one.evaluate(script))
