"""Every screen in every language: no barrier known to axe, no text cut or beyond 360 px, no English left.

Each screen is opened once in each language, and checked in every way while it is open; the tests are about what was
found. English is also checked with each text made longer by two fifths, as a translation may be. That takes minutes,
so `make fuzz` does it.
"""

import asyncio
import os
from contextlib import closing
from dataclasses import dataclass, field

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, ViewportSize

from locales import ENGLISH, LANGUAGES
from tests.support.product import Product
from tests.system.browser.barriers import grave_faults
from tests.system.browser.conftest import TAKEN_OVER, NewVisitor, Visitor, visitors
from tests.system.browser.screens import ON_ITS_TAB, Screen, for_members, for_visitors, of_server
from tests.system.browser.test_every_screen import USUAL, a_resting_rule, walked
from tests.system.browser.village import add_bot, village
from tests.system.whole.people import Person, rule

in_every_language = pytest.mark.skipif(
    "EVERY_LANGUAGE" not in os.environ, reason="to open each screen in each language takes minutes: make fuzz does it"
)

NARROW = ViewportSize(width=360, height=900)
NOT_LATIN = ("ja", "zh-CN")
"""Languages in whose texts words in Latin letters are names, or untranslated."""
WITH_FORMS = frozenset(
    {"login", "dashboard", "account", "server-config-channel", "add-verification-rule", "wallet-verification"}
)
"""Screens that are also walked by keyboard in each language: reachability does not depend on the words."""

WIDE = ("W" * 32, "漢" * 32, "ﷺ" * 12, "Держатели самых больших собраний", "בעלי האוספים הגדולים ביותר", "🦄" * 16)
OF_NO_LANGUAGE = ("color-contrast",)
"""What the other test checks in both themes and no word changes; it takes longer than all other checks together."""

LOADED = f"""
() => {ON_ITS_TAB} && document.querySelector('h1')?.checkVisibility()
  && ![...document.querySelectorAll('main .skeleton')].some(one => one.checkVisibility())
"""

# Each text that is cut, or that lies outside of the window or its button. Scrollable content, texts only for
# screen readers, and names that end in an ellipsis on purpose do not count.
CUT = """
() => {
  const found = [], width = document.documentElement.clientWidth;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const holder = node.parentElement;
    if (!node.data.trim() || !holder.checkVisibility({visibilityProperty: true, opacityProperty: true})) continue;
    if (holder.closest('.sr-only, .truncate, .cut-name, [class*=line-clamp], option, script, style, [inert]')) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) {
      if (box.width < 1) continue;
      for (let one = holder; one; one = one.parentElement) {
        const style = getComputedStyle(one), around = one.getBoundingClientRect();
        if (['auto', 'scroll'].includes(style.overflowX) && one !== document.documentElement) break;
        const closed = one.matches('button, .btn') || ['hidden', 'clip'].includes(style.overflowX);
        const beyond = box.right > around.right + 1 || box.left < around.left - 1;
        const outside = one === document.body && (box.right > width + 1 || box.left < -1);
        if ((closed && beyond && around.width > 1) || outside) {
          found.push(`${node.data.trim().slice(0, 80)} in ${one.tagName} ${String(one.className).slice(0, 60)}`);
          break;
        }
      }
    }
  }
  return [...new Set(found)];
}
"""

# Visible or spoken text with words in Latin letters: several in lower case, or a single word only.
# Texts by people or providers, code, addresses and names of settings are left out.
LATIN = """
known => {
  const found = [];
  const foreign = '[translate=no], code, pre, kbd, samp, script, style, [lang]:not(html)';
  const look = (text, where) => {
    let rest = text.trim();
    for (const name of known) rest = rest.replaceAll(name, '');
    const several = /[a-z]{2,}(?:,? [a-z]{2,}){1,}/.test(rest);
    const alone = /^[A-Za-z][A-Za-z .:…'’-]{2,}$/.test(rest.trim());
    if (several || alone) found.push(`${where}: ${text.trim().slice(0, 120)}`);
  };
  look(document.title, 'title');
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const holder = node.parentElement;
    if (holder.closest(foreign) || (!holder.closest('option') && !holder.checkVisibility())) continue;
    look(node.data, holder.tagName.toLowerCase());
  }
  for (const name of ['aria-label', 'placeholder', 'title', 'alt', 'data-words'])
    for (const one of document.querySelectorAll(`[${name}]`))
      if (one.checkVisibility() && !one.closest(foreign)) look(one.getAttribute(name), name);
  return [...new Set(found)];
}
"""

# A text as a translation may make it: accents, brackets, and two fifths longer.
STRETCH = """
known => {
  const accents = {a: 'á', e: 'é', i: 'í', o: 'ó', u: 'ú', n: 'ñ', A: 'Å', E: 'É', O: 'Ö', c: 'ç'};
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const nodes = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode()) nodes.push(node);
  for (const node of nodes) {
    const text = node.data.trim();
    const fixed = node.parentElement.closest('script, style, [translate=no], code, pre');
    if (!/[A-Za-z]{2}/.test(text) || known.includes(text) || fixed) continue;
    const words = text.split(' '), more = [];
    for (let length = 0; length < text.length * 0.4; length += more.at(-1).length + 1)
      more.push(words[more.length % words.length].slice(0, 12));
    const longer = [...text].map(one => accents[one] ?? one).join('') + ' ' + more.join(' ');
    node.data = node.data.replace(text, `⟦${longer}⟧`);
  }
}
"""


@dataclass(frozen=True)
class Found:
    """The faults found on all screens, by language and screen; empty lists when all is well."""

    spoken: dict[tuple[str, str], str] = field(default_factory=dict)
    grave: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    wide: list[tuple[str, str, int]] = field(default_factory=list)
    cut: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    latin: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    unreached: dict[tuple[str, str], list[str]] = field(default_factory=dict)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def found(chromium: Browser, product: Product) -> Found:
    """The faults found by a visitor and ada in each language, each on all screens that they may see."""
    found, known = Found(), _names(product)
    async with visitors(chromium, product) as visit, a_resting_rule(product) as server_id:
        members = for_members(product, server_id)
        for language in LANGUAGES:
            visitor, ada = await visit(locale=language), await visit(locale=language)
            await ada.enter("ada", "/account")
            await asyncio.gather(
                _look(visitor, for_visitors(), language, known, found), _look(ada, members, language, known, found)
            )
            await visitor.context.close()
            await ada.context.close()
    return found


@in_every_language
async def test_a_page_says_which_language_it_is_in(found: Found) -> None:
    assert {key: said for key, said in found.spoken.items() if said != key[0]} == {}


@in_every_language
async def test_axe_finds_nothing_grave_in_any_language(found: Found) -> None:
    assert found.grave == {}


@in_every_language
async def test_no_text_is_cut_or_wider_than_a_narrow_phone(found: Found) -> None:
    assert (found.wide, found.cut) == ([], {})


@in_every_language
@pytest.mark.parametrize("language", NOT_LATIN)
async def test_no_screen_has_english_in_another_language(found: Found, language: str) -> None:
    assert {screen: said for (spoken, screen), said in found.latin.items() if spoken == language} == {}


@in_every_language
async def test_the_keyboard_alone_reaches_everything_in_each_language(found: Found) -> None:
    assert found.unreached == {}


async def test_wide_names_and_names_of_any_script_fit_on_a_narrow_phone(visit: NewVisitor, product: Product) -> None:
    here = village(product, "owner", "member", bot=False)
    contract = product.world()["chains"]["base"]["collections"][0]["contract"]
    for name in WIDE:
        product.control("guilds", {"action": "add_role", "guild": here.guild, "name": name})
    add_bot(product, here["owner"], here.guild)
    with closing(Person(product, here["owner"])) as owner:
        server_id = owner.server(here.guild)["internalId"]
        for name in WIDE:
            owner.post("/api/verification-rules", **rule(product, contract, here.guild, name, server_id), shadow=True)
    found, who = Found(), await visit()
    await who.enter(here["owner"], "/account")
    server = {"serverId": server_id, "discordServerId": product.guild(here.guild)["id"], "serverName": here.guild}
    await who.page.set_viewport_size(NARROW)
    for screen in of_server(server):
        await who.follow(screen.path)
        await loaded(who.page)
        await _narrow(who.page, (ENGLISH, screen.name), found)
    assert (found.wide, found.cut) == ([], {})


def _names(product: Product) -> list[str]:
    """Return texts by people and providers, and names that are the same in every language, the longest first."""
    world = product.world()
    named = {name for user in world["users"] for name in (user["username"], user["username"].capitalize())}
    named |= set(world["chains"])
    for guild in world["guilds"]:
        named |= {
            guild["name"],
            *(role["name"] for role in guild["roles"]),
            *(one["name"] for one in guild["channels"]),
        }
    for chain in world["chains"].values():
        named |= {one["name"] for one in chain["collections"]}
    return sorted(named | NAMES, key=len, reverse=True)


NAMES = {
    "Collector by calls", "HoldfastBot", "Holdfast Labs", "Holdfast", "Discord", "OpenSea", "Magic Eden", "Ethereum",
    "Polygon", "Arbitrum", "Optimism", "Base", "ApeChain", "Apechain", "Abstract", "Solana", "English", "Español",
    "Português (Brasil)", "Tide Pools", "Developer Portal", "Collab.Land", "Guild",
    "Webhook",
}  # fmt: skip


async def _look(who: Visitor, screens: list[Screen], language: str, known: list[str], found: Found) -> None:
    """Open each screen and record its faults."""
    for screen in screens:
        key = language, screen.name
        await who.page.set_viewport_size(USUAL)
        await who.open(screen.path)
        await who.page.wait_for_function(LOADED)
        found.spoken[key] = await who.page.evaluate("document.documentElement.lang")
        if language in NOT_LATIN and (said := await who.page.evaluate(LATIN, known)):
            found.latin[key] = said
        if language != ENGLISH and (grave := await grave_faults(who.page, *OF_NO_LANGUAGE)):
            found.grave[key] = grave
        if language != ENGLISH and screen.name in WITH_FORMS and (faults := await walked(who, loaded)):
            found.unreached[key] = faults
        await who.page.set_viewport_size(NARROW)
        await _narrow(who.page, key, found)
        if language == ENGLISH:
            await who.page.wait_for_function(TAKEN_OVER)
            await who.page.evaluate(STRETCH, known)
            await _narrow(who.page, ("longer", screen.name), found)


async def _narrow(page: Page, key: tuple[str, str], found: Found) -> None:
    needed = await page.evaluate("document.documentElement.scrollWidth")
    if needed > NARROW["width"]:
        found.wide.append((*key, needed))
    if texts := await page.evaluate(CUT):
        found.cut[key] = texts


async def loaded(page: Page) -> None:
    """Wait until the screen shows its heading and has no placeholders."""
    await page.wait_for_function(LOADED)
