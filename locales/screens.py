"""Writes the built screens in every language, in place of the marks that a build leaves in them.

The English files stay where the build put them. Those of another language are in `assets/<tag>`, which has only the
files that differ, and in `languages/<language>` beside the built files, which has the pages.
"""

import hashlib
import html
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from locales import (
    ENGLISH,
    LANGUAGES,
    N_,
    forms,
    language,
    listed,
    ngettext,
    number,
    pgettext,
    pieces,
    speaking,
    whether_spoken,
)
from locales import _ as translated
from locales.text_marks import (
    FORMS,
    IN_CONTEXT,
    LANGUAGE,
    LIST,
    NUMBER,
    PIECE,
    PLURAL,
    SPOKEN,
    TEXT,
    Call,
    Mark,
    has_marks,
    replaced,
)

PAGES = "languages"
"""The folder of the pages in other languages, beside that of the built files."""
_SERVED = {"index.html": "index.html", "__spa-fallback.html": "404.html"}
"""The pages that the server looks for, by the names that the build gives them; copies under other names are not needed.

Reflex copies the fallback to `404.html` only after everything else.
"""
NEW_VERSION, RELOAD = N_("A new version of this app is available."), N_("Reload")
FRAMEWORK_TEXTS = {
    NEW_VERSION: re.compile(rf"""(["'`]){re.escape(NEW_VERSION)}(["'`])"""),
    RELOAD: re.compile(rf"""(\.textContent\s*=\s*["'`]){re.escape(RELOAD)}(["'`])"""),
}
"""The texts of the framework's banner for a page of an older version, and where they are in its script."""
_SCRIPT_PATH = re.compile(r"/assets/(?=[^/\"'`\s]+\.js\b)")
_INLINE_SCRIPT = re.compile(r"<script\b[^>]*>.*?</script>", re.S)
_TAG = re.compile(r"([A-Za-z]+(?:-[A-Za-z]+)*)-[0-9a-f]{8}")


class MarkLeft(Exception):
    """Raised when a mark in a built file cannot be read, so that a reader would see it."""


def pages_of(built: Path, language: str) -> Path:
    """Return the folder of the pages in a language, which is absent where the screens are English only."""
    return built if language == ENGLISH else built.parent / PAGES / language


def language_of_tag(tag: str) -> str | None:
    """Return the language of a folder in `assets`, or None for any other name."""
    found = _TAG.fullmatch(tag)
    return found[1] if found is not None and found[1] in LANGUAGES else None


def write(built: Path) -> None:
    """Write every language. Raises MarkLeft."""
    scripts = {file.name: _with_our_marks(file.read_text()) for file in sorted((built / "assets").glob("*.js"))}
    pages = {file.relative_to(built): file.read_text() for file in sorted(built.rglob("*.html"))}
    for chosen in LANGUAGES[1:]:
        with speaking(chosen):
            _write_language(built, scripts, pages)
    with speaking(ENGLISH):
        for name, text in scripts.items():
            _keep(built / "assets" / name, in_script(text), text)
        for name, text in pages.items():
            _keep(built / name, in_page(text), text)


def _with_our_marks(script: str) -> str:
    """Return a built script with marks in place of the framework's own texts for people."""
    if NEW_VERSION not in script:
        return script
    for text, place in FRAMEWORK_TEXTS.items():
        script = place.sub(rf"\g<1>{Mark.of(TEXT, text)}\g<2>", script)
    return script


def _write_language(built: Path, scripts: dict[str, str], pages: dict[Path, str]) -> None:
    said = {name: in_script(text) for name, text in scripts.items()}
    digest = hashlib.sha256("\0".join(said.values()).encode()).hexdigest()[:8]
    tag = f"{language()}-{digest}"

    def placed(text: str) -> str:
        return _SCRIPT_PATH.sub(f"/assets/{tag}/", text)

    for name, text in said.items():
        _keep(built / "assets" / tag / name, placed(text), scripts[name])
    for name, text in pages.items():
        if (served := _SERVED.get(name.name)) is not None:
            _keep(pages_of(built, language()) / name.with_name(served), placed(in_page(text)), "")


def _keep(file: Path, text: str, before: str) -> None:
    if has_marks(text):
        raise MarkLeft(file)
    if text != before:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def in_script(text: str) -> str:
    """Return JavaScript with its marks replaced by their texts; the marks are inside strings of any kind."""
    return replaced(text, _read, _for_script)


def in_page(text: str) -> str:
    """Return HTML with its marks replaced by their texts."""
    return replaced(_INLINE_SCRIPT.sub(lambda found: in_script(found[0]), text), _read, html.escape)


_NOT_IN_SCRIPT = str.maketrans({"\\": r"\\", '"': r"\"", "'": r"\'", "`": r"\`", "$": r"\$", "\n": r"\n", "<": r"\x3c"})


def _for_script(text: str) -> str:
    """Return a text as it is written between quotes, apostrophes or backticks."""
    return text.translate(_NOT_IN_SCRIPT)


def _read(call: Call) -> str:
    kind, arguments, values = call
    if kind == LANGUAGE:
        return language()
    if kind == SPOKEN:
        return whether_spoken(*arguments)
    if kind == NUMBER:
        return number(*arguments)
    if kind == PIECE:
        return pieces(translated(str(arguments[0])))[int(arguments[1])]
    if kind == LIST:
        return listed(*arguments)
    if kind == FORMS and "count" not in values:
        return forms(*arguments)
    lookups: dict[str, Callable[..., str]] = {PLURAL: ngettext, FORMS: ngettext, IN_CONTEXT: pgettext}
    counted: list[Any] = [*arguments, values["count"]] if kind == FORMS else arguments
    text = lookups.get(kind, translated)(*counted)
    return text.format(**values) if values else text
