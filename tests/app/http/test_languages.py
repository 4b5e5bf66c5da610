"""The language of a screen: which one a browser asks for, the built files in it, and how a person chooses it."""

import re
from pathlib import Path

import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from app import build
from app.http import languages
from app.http.html_pages import Documents, Route
from app.http.languages import Languages
from app.http.static_files import BUILT, BuiltFiles
from locales import LANGUAGES, _, forms, language, language_tag, listed, pieces, screens, speaking
from locales.browser_language import asked_for
from locales.text_marks import Mark, has_marks

PUBLIC_URL = "http://localhost:3000"
LEAD = "Roles that hold as long as the NFT does"


@pytest.mark.parametrize(
    ("cookies", "accepted", "wanted"),
    [
        (None, None, "en"),
        (None, "pt-BR", "pt-BR"),
        (None, "pt-PT,pt;q=0.9,en;q=0.8", "pt-BR"),
        (None, "en-US,en;q=0.9,pt-BR;q=0.8", "en"),
        (None, "fr-FR, es-419;q=0.7, ja ; q=0.8", "ja"),
        (None, "es;q=0.5,ja;q=0.5", "es"),
        (None, "ja;q=0,zh-CN;q=0.1", "zh-CN"),
        (None, "zh-TW", "en"),
        (None, "zh-Hans-SG", "zh-CN"),
        (None, "fr, *;q=0.5", "en"),
        (None, "ja;q=2, es;q=0.1", "es"),
        (None, "\u00e9\u00e9, ;;q, -, ja", "ja"),
        (None, ",".join(["fr"] * 500) + ",ja", "en"),
        ("hf_language=es", "pt-BR", "es"),
        ("a=b; hf_language=ja ; c=d", "pt-BR", "ja"),
        ("hf_language=../ja", "pt-BR", "pt-BR"),
        ("hf_language=", "pt-BR", "pt-BR"),
    ],
)
def test_a_browser_gets_its_language(cookies: str | None, accepted: str | None, wanted: str) -> None:
    assert asked_for(cookies, accepted) == wanted


def test_a_mark_becomes_the_text_of_each_language() -> None:
    with speaking("ja"):
        text = f"{Mark.of('text', 'Verify')}·{Mark.of('list', [Mark.of('text', 'Verify'), 'x'], 'and')}"
        assert screens.in_page(text) == f"{_('Verify')}·{listed([_('Verify'), 'x'])}"
        assert screens.in_page(Mark.of("language")) == language_tag() == "ja"
        assert screens.in_script(Mark.of("spoken", "ja") + Mark.of("spoken", "es")) == "truefalse"
        before, name, after = pieces(_("Ask in our {chat}."))
        assert (screens.in_page(Mark.of("piece", "Ask in our {chat}.", 0)), name) == (before, "chat")
        assert screens.in_page(Mark.of("piece", "Ask in our {chat}.", 2)) == after != "."
    assert screens.in_script(Mark.of("text", "Verify {x}").format(x=Mark.of("text", "now"))) == "Verify now"


def test_a_value_of_the_page_is_not_known_in_a_build() -> None:
    with pytest.raises(TypeError):
        Mark.of("text", "{a}").format(a=object())


def test_a_text_cannot_leave_its_place() -> None:
    hostile = "\"'`${a}\\ \n</script>&"
    assert screens.in_page(f'<a title="{Mark.of("text", hostile)}">').count('"') == 2
    assert screens.in_script(Mark.of("text", hostile)) == "\\\"\\'\\`\\${a}\\\\ \\n\\x3c/script>&"
    assert "</script>&" not in screens.in_page(f"<script>'{Mark.of('text', hostile)}'</script>")


def test_a_number_on_a_page_has_every_form() -> None:
    one, several = "{count} confirmation", "{count} confirmations"
    assert forms(one, several) == f"one\x1f{one}\x1fother\x1f{several}"
    # `assets/screens/texts.js` keeps them like this while a page is prerendered.
    values = '{"count":1}'.encode("utf-16-be").hex()
    assert screens.in_page(f"{Mark.of('forms', 'one {count}', '{count} of them')}~v:{values}~") == "one 1"
    with speaking("ja"):
        assert (
            forms("{count} of {needed} confirmation.", "{count} of {needed} confirmations.").split("\x1f")[0] == "other"
        )


def test_every_language_is_written_once(tmp_path: Path) -> None:
    built = tmp_path / "client"
    (built / "assets").mkdir(parents=True)
    (built / "assets" / "page.js").write_text(
        f'import"./parts.js";var a="{Mark.of("text", "Verify")}","/assets/page.js"'
    )
    (built / "assets" / "parts.js").write_text("var react")
    page = '<html lang="en"><link href="/assets/page.js"/><link href="/assets/a.css"/><p>' + Mark.of("text", "Verify")
    (built / "index.html").write_text(page)
    (built / "__spa-fallback.html").write_text(page)
    screens.write(built)
    for name in ("index.html", "404.html"):
        assert (screens.pages_of(built, "ja") / name).read_text().endswith("<p>認証する"), name
    assert (built / "index.html").read_text().endswith("<p>Verify")
    assert '"Verify","/assets/page.js"' in (built / "assets" / "page.js").read_text()
    (folder,) = (built / "assets").glob("ja-*")
    assert [file.name for file in folder.iterdir()] == ["page.js"], "what has no text is there once"
    translated = screens.pages_of(built, "ja") / "index.html"
    assert f'<link href="/assets/{folder.name}/page.js"/><link href="/assets/a.css"/>' in translated.read_text()
    assert f'"/assets/{folder.name}/page.js"' in (folder / "page.js").read_text()
    assert languages.script(built, f"/assets/{folder.name}/page.js") == (f"/assets/{folder.name}/page.js", True)
    assert languages.script(built, f"/assets/{folder.name}/parts.js") == ("/assets/parts.js", True)
    gone = languages.script(built, "/assets/ja-00000000/page.js")
    assert gone == (f"/assets/{folder.name}/page.js", False), "a page from before an update finds what is there now"
    for strange in ("/assets/fr-00000000/page.js", "/assets/ja-00000000/../x", "/assets/ja-00000000/\0", "/assets/x"):
        assert languages.script(built, strange) == (strange, True)


def test_a_mark_that_nobody_can_read_fails_the_build(tmp_path: Path) -> None:
    (tmp_path / "client" / "assets").mkdir(parents=True)
    (tmp_path / "client" / "assets" / "page.js").write_text(Mark.of("text", "Verify")[:-3])
    with pytest.raises(screens.MarkLeft):
        screens.write(tmp_path / "client")


def test_no_mark_is_left_in_what_is_built() -> None:
    build.ensure_built(lambda _: None)
    files = [*BUILT.rglob("*.js"), *BUILT.rglob("*.html"), *(BUILT.parent / screens.PAGES).rglob("*.html")]
    assert [file for file in files if has_marks(file.read_text())] == []
    assert len(list((BUILT / "assets").glob("*-????????/_index-*.js"))) == len(LANGUAGES) - 1
    for page in (screens.pages_of(BUILT, one) / "contact" / "index.html" for one in LANGUAGES):
        assert 'id="what-to-tell-us"' in page.read_text(), "an address within a page is the same in every language"


async def nothing_else(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse(language(), 404)(scope, receive, send)


def browser() -> httpx.AsyncClient:
    """A browser in front of the built screens."""
    app = Languages(BuiltFiles(Documents(nothing_else, [Route("/", False)], {})))
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url=PUBLIC_URL)


@pytest.mark.parametrize("wanted", LANGUAGES)
async def test_a_page_is_in_its_language_from_the_first_byte(wanted: str) -> None:
    build.ensure_built(lambda _: None)
    async with browser() as visitor:
        page = await visitor.get("/", headers={"accept-language": wanted, "accept-encoding": "identity"})
        with speaking(wanted):
            assert f"<title>{_(LEAD)} · " in page.text
            assert _("Get Started") in page.text
        assert f'lang="{wanted}"' in page.text[:200]
        assert page.headers["content-language"] == wanted
        assert "Accept-Language" in page.headers["vary"]
        assert re.findall(r'lang="([\w-]+)"[^>]*aria-current="true"|aria-current="true"[^>]*lang="([\w-]+)"', page.text)
        assert (LEAD in page.text) is (wanted == "en")
        own = re.findall(r'rel="modulepreload" href="/assets/([^"]+/)', page.text)
        assert (len(own) > 0) is (wanted != "en")


async def test_a_choice_is_kept_in_the_browser_and_leads_back_to_the_page() -> None:
    async with browser() as visitor:
        await visitor.get("/language/ja", headers={"referer": f"{PUBLIC_URL}//evil.example/a?b=1&session=x"})
        chosen = await visitor.get("/language/ja", headers={"referer": f"{PUBLIC_URL}//evil.example/a?b=1&session=x"})
        assert (chosen.status_code, chosen.headers["location"]) == (303, "/evil.example/a?b=1")
        assert "httponly" in chosen.headers["set-cookie"].lower()
        assert (await visitor.get("/api/x", headers={"accept-language": "es"})).text == "ja"
        for elsewhere in ("https://evil.example/", "", f"{PUBLIC_URL}/a://["):
            back = await visitor.get("/language/es", headers={"referer": elsewhere})
            assert back.headers["location"] == "/"


@pytest.mark.parametrize("site", [{"sec-fetch-site": "cross-site"}, {"sec-purpose": "prefetch"}])
async def test_another_site_cannot_choose(site: dict[str, str]) -> None:
    async with browser() as visitor:
        assert "set-cookie" not in (await visitor.get("/language/ja", headers=site)).headers


async def test_an_unknown_language_is_no_choice() -> None:
    async with browser() as visitor:
        assert "set-cookie" not in (await visitor.get("/language/fr")).headers
        assert "set-cookie" not in (await visitor.head("/language/ja")).headers


def test_the_frameworks_own_banner_is_in_every_language() -> None:
    build.ensure_built(lambda _: None)
    for chosen in LANGUAGES[1:]:
        with speaking(chosen):
            texts = [_(text) for text in screens.FRAMEWORK_TEXTS]
        written = [file.read_text() for file in (BUILT / "assets").glob(f"{chosen}-????????/*.js")]
        (banner,) = [script for script in written if texts[0] in script]
        assert re.search(rf"""textContent=["'`]{texts[1]}["'`]""", banner)
        assert not any(text in banner for text in screens.FRAMEWORK_TEXTS if text != screens.RELOAD)
