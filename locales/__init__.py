"""Texts for people in the reader's language, and how it writes numbers, dates and lists.

The English text is the key of an entry and is in the code. `<language>.po` has every text in one other language; a text
without an entry appears in English. `make texts` collects the texts and adds the new ones to each file.
"""

import os
import re
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import date, datetime
from functools import cache, lru_cache, reduce
from gettext import GNUTranslations
from io import BytesIO
from pathlib import Path
from typing import Literal

from babel import Locale, UnknownLocaleError
from babel.core import get_global
from babel.dates import format_date, format_skeleton, format_time
from babel.lists import format_list
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.numbers import get_decimal_symbol, get_group_symbol

from locales import text_marks
from locales.text_marks import MARKED

ENGLISH = "en"
FOLDER = Path(__file__).parent
LANGUAGES = (ENGLISH, *sorted(path.stem for path in FOLDER.glob("*.po")))
"""The languages that have a file, as BCP 47 tags."""

_COUNTS = (*range(1, 200), 0, 1_000_000)
"""Numbers that include at least one for each plural form of every language."""

_PLACE = re.compile(r"\{(\w+)\}")

_language = ContextVar("language", default=MARKED if os.environ.get(text_marks.WHILE_BUILDING) else ENGLISH)


def own_name(language: str) -> str:
    """Return what a language calls itself, such as `日本語`."""
    with speaking(language):
        # Translators: the name of your own language in your own language, not the word for English.
        return _("English")


def speak(locale: str | None) -> None:
    """Read texts in the language of a locale from now on in the running task."""
    _language.set(best_of(locale))


def language() -> str:
    """Return the language in which texts are read now; each task and each request has its own."""
    return _language.get()


@contextmanager
def speaking(locale: str | None) -> Generator[None]:
    """Read texts in the language of a locale inside the `with` block."""
    token = _language.set(best_of(locale))
    try:
        yield
    finally:
        _language.reset(token)


@lru_cache(maxsize=256)
def best_of(locale: str | None) -> str:
    """Return the language to use for a locale such as `es-419` or `zh-CN`; English for an unknown one."""
    return matching(locale) or ENGLISH


def matching(locale: str | None) -> str | None:
    """Return the language in LANGUAGES for a locale, or None.

    The region may differ but not the script: `zh-TW` does not lead to simplified characters.
    """
    if locale in LANGUAGES:
        return locale
    wanted = _tongue(locale or "")
    return next((one for one in LANGUAGES if wanted is not None and _tongue(one) == wanted), None)


def _tongue(tag: str) -> tuple[str, str | None] | None:
    """Return a tag's language and script, or None for a text that is not the tag of a known language."""
    try:
        found = Locale.parse(tag, sep="-")
        usual = get_global("likely_subtags").get(found.language, found.language)
        return found.language, found.script or Locale.parse(usual).script
    except (ValueError, UnknownLocaleError):
        return None


@cache
def _texts(language: str) -> GNUTranslations:
    """Return the entries of a language's file, read once."""
    with (FOLDER / f"{language}.po").open("rb") as file:
        catalog = read_po(file)
    compiled = BytesIO()
    write_mo(compiled, catalog)
    compiled.seek(0)
    return GNUTranslations(compiled)


def _(text: str) -> str:
    """Return the text in the reader's language."""
    # The entry of the empty text is the file's header.
    if (chosen := _language.get()) == ENGLISH or not text:
        return text
    return text_marks.Mark.of(text_marks.TEXT, text) if chosen == MARKED else _texts(chosen).gettext(text)


def ngettext(one: str, several: str, count: int) -> str:
    """Return the text for this number in the reader's language, whose plural forms may differ from the English ones."""
    if (chosen := _language.get()) == ENGLISH:
        return one if count == 1 else several
    if chosen == MARKED:
        return text_marks.Mark.of(text_marks.PLURAL, one, several, count)
    return _texts(chosen).ngettext(one, several, count)


def pgettext(context: str, text: str) -> str:
    """Return the text in the reader's language, with the meaning that it has in this context."""
    if (chosen := _language.get()) == ENGLISH:
        return text
    return (
        text_marks.Mark.of(text_marks.IN_CONTEXT, context, text)
        if chosen == MARKED
        else _texts(chosen).pgettext(context, text)
    )


def N_(text: str) -> str:
    """Return the text itself: this marks a constant that `_` translates when it is shown."""
    return text


def NP_(context: str, text: str) -> str:
    """Return the text itself: this marks a constant that `pgettext` translates with this context."""
    return text


def in_every_language(text: str, context: str = "") -> dict[str, str]:
    """Return the text by language, without English and without the languages that have no entry for it."""
    found: dict[str, str] = {}
    for one in LANGUAGES[1:]:
        with speaking(one):
            found[one] = pgettext(context, text) if context else _(text)
    return {one: said for one, said in found.items() if said != text}


def pieces(text: str) -> list[str]:
    """Return a text in pieces: the text before its first place, that place's name, the text after it, and so on.

    The places keep the order of the English text, because a built screen fills them in that order.
    """
    if language() != MARKED:
        return _PLACE.split(text)
    english = text_marks.english_of(text)
    return [
        piece if at % 2 else text_marks.Mark.of(text_marks.PIECE, english, at)
        for at, piece in enumerate(_PLACE.split(english))
    ]


def forms(one: str, several: str) -> str:
    """Return every form of a text with a number, for a page on which the number changes (assets/screens/texts.js)."""
    if language() == MARKED:
        return text_marks.Mark.of(text_marks.FORMS, one, several)
    said = {_locale().plural_form(count): ngettext(one, several, count) for count in _COUNTS}
    return "\x1f".join(part for form in said.items() for part in form)


def language_tag() -> str:
    """Return the language of the reader as a BCP 47 tag, which is a mark while the screens are built."""
    return text_marks.Mark.of(text_marks.LANGUAGE) if language() == MARKED else language()


def whether_spoken(language: str) -> str:
    """Return `true` or `false`: whether a language is the reader's, as an attribute of a page."""
    if _language.get() == MARKED:
        return text_marks.Mark.of(text_marks.SPOKEN, language)
    return "true" if _language.get() == language else "false"


def number(value: int) -> str:
    """Return a whole number as the reader's language groups its digits, such as `1,234`."""
    if language() == MARKED:
        return text_marks.Mark.of(text_marks.NUMBER, value)
    return f"{value:,}".replace(",", get_group_symbol(_locale()))


def decimal(amount: str) -> str:
    """Return an amount such as `1234.5` with the reader's comma; English texts have amounts as people type them."""
    if language() in {ENGLISH, MARKED}:
        return amount
    whole, point, part = amount.partition(".")
    return number(int(whole)) + (get_decimal_symbol(_locale()) if point else "") + part


def listed(words: Iterable[str], joint: Literal["and", "or"] = "and") -> str:
    """Return at least one word as a list in a sentence of the reader's language, such as `a, b and c`."""
    if language() == ENGLISH:
        *first, last = words
        return f"{', '.join(first)} {joint} {last}" if first else last
    if language() == MARKED:
        return text_marks.Mark.of(text_marks.LIST, list(words), joint)
    return format_list(list(words), "standard" if joint == "and" else "or", _locale())


def first_of(words: Sequence[str], most: int) -> list[str]:
    """Return the first `most` words, followed by how many more there are, if any: for `listed`, `series` or lines."""
    more = len(words) - most
    return [*words[:most], _("{count} more").format(count=more)] if more > 0 else list(words)


def series(words: Iterable[str]) -> str:
    """Return words one after another, separated as the reader's language separates them, such as `a, b, c`."""
    # Translators: two of several names in a row, without an "and"; your language may have another comma.
    return _chained(_("{before}, {after}"), tuple(words))


def sentences(*each: str) -> str:
    """Return whole sentences as one text, separated as the reader's language separates them."""
    # Translators: two sentences in a row; leave out the space where your language has none.
    return _chained(_("{before} {after}"), each)


def _chained(pair: str, each: Sequence[str]) -> str:
    return reduce(lambda before, after: pair.format(before=before, after=after), each) if each else ""


def day(moment: datetime) -> str:
    """Return a moment's date in the reader's language, such as `3 May 2026`."""
    return format_date(moment, "long", _locale())


def short_day(moment: date) -> str:
    """Return a date without its year, as short as the reader's language writes it, such as `3 Sep`."""
    return f"{moment:%-d %b}" if language() == ENGLISH else format_skeleton("MMMd", moment, locale=_locale())


def day_of_year(moment: datetime) -> str:
    """Return a moment's date without its year in the reader's language, such as `3 May`."""
    return format_skeleton("MMMMd", moment, locale=_locale())


def day_and_time(moment: datetime) -> str:
    """Return a moment's date and time in UTC in the reader's language, such as `3 May 2026 at 08:00 UTC`."""
    return _("{date} at {time} UTC").format(date=day(moment), time=format_time(moment, "HH:mm", locale=_locale()))


def day_and_minute(moment: datetime) -> str:
    """Return a moment's date without its year and its time in UTC, such as `3 May, 08:00 UTC`."""
    time = format_time(moment, "HH:mm", locale=_locale())
    return _("{date}, {time} UTC").format(date=day_of_year(moment), time=time)


def day_and_clock(moment: datetime) -> str:
    """Return a moment's date and time in UTC as short as can be, such as `3 May 2026, 08:00 UTC`."""
    time = format_time(moment, "HH:mm", locale=_locale())
    return _("{date}, {time} UTC").format(date=day(moment), time=time)


def _locale() -> Locale:
    # Dates of the English texts are British: 3 May 2026.
    return Locale.parse("en_GB" if (chosen := _language.get()) == ENGLISH else chosen.replace("-", "_"))
