"""The language in which a text is shown."""

import asyncio
from contextvars import ContextVar
from datetime import UTC, datetime

import pytest

import locales
from locales import (
    LANGUAGES,
    _,
    best_of,
    day,
    day_and_time,
    decimal,
    language,
    listed,
    ngettext,
    number,
    pgettext,
    sentences,
    series,
    speaking,
)  # fmt: skip
from locales.screens import in_script
from locales.text_marks import MARKED

NOON = datetime(2026, 5, 3, 12, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("locale", "found"),
    [
        ("ja", "ja"), ("zh-CN", "zh-CN"), ("zh-Hans-SG", "zh-CN"), ("zh", "zh-CN"), ("pt-BR", "pt-BR"), ("pt", "pt-BR"),
        ("es-ES", "es"), ("es-419", "es"), ("es", "es"), ("en-US", "en"), ("en-GB", "en"),
        # Another script, unknown languages, and texts that are not a locale.
        ("zh-TW", "en"), ("de", "en"), ("xx", "en"), ("", "en"), (None, "en"), ("-", "en"), ("../ja", "en"),
        ("ja\x00", "en"), ("ja-" * 40, "en"),
    ],
)  # fmt: skip
def test_a_locale_has_one_language(locale: str | None, found: str) -> None:
    assert best_of(locale) == found


def test_texts_are_english_outside_of_every_language() -> None:
    assert language() == "en"
    assert _("Your wallets") == "Your wallets"
    assert ngettext("{count} of {needed} confirmation.", "{count} of {needed} confirmations.", 2).endswith("ations.")
    assert pgettext("command", "why") == "why"


def test_a_language_ends_with_its_block_also_after_an_error() -> None:
    def fail() -> None:
        with speaking("ja"):
            assert _("Your wallets") == "あなたのウォレット"
            with speaking("es-419"):
                assert _("Your wallets") == "Tus billeteras"
            assert pgettext("command", "why") == "理由"
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert _("Your wallets") == "Your wallets"


@pytest.mark.parametrize("each", LANGUAGES)
def test_a_text_without_an_entry_is_english(each: str) -> None:
    with speaking(each):
        assert _("Nobody has translated this.") == "Nobody has translated this."
        assert _("") == ""
        assert ngettext("one thing", "many things", 1) == "one thing"
        assert pgettext("nowhere", "why") == "why"


async def test_languages_of_concurrent_tasks_do_not_mix() -> None:
    spoken, both = list[str](), asyncio.Barrier(len(LANGUAGES))

    async def speak(chosen: str) -> None:
        with speaking(chosen):
            for _round in range(3):
                await both.wait()
                spoken.append(f"{chosen}: {language()}")
                # A task started meanwhile uses the language of the task that starts it.
                spoken.append(await asyncio.create_task(child(chosen)))

    async def child(chosen: str) -> str:
        await both.wait()
        return f"{chosen}: {language()}"

    await asyncio.gather(*(speak(one) for one in LANGUAGES))
    assert sorted(spoken) == sorted([f"{one}: {one}" for one in LANGUAGES] * 6)


@pytest.mark.parametrize(
    ("locale", "date", "moment", "three", "either"),
    [
        ("en", "3 May 2026", "3 May 2026 at 12:30 UTC", "a, b and c", "a or b"),
        ("ja", "2026年5月3日", "2026年5月3日 12:30 UTC", "a、b、c", "aまたはb"),
        ("zh-CN", "2026年5月3日", "2026年5月3日 12:30 UTC", "a、b和c", "a或b"),
        ("es-419", "3 de mayo de 2026", "3 de mayo de 2026 a las 12:30 UTC", "a, b y c", "a o b"),
        ("pt-BR", "3 de maio de 2026", "3 de maio de 2026 às 12:30 UTC", "a, b e c", "a ou b"),
    ],
)
def test_dates_and_lists_are_written_as_the_language_does(
    locale: str, date: str, moment: str, three: str, either: str
) -> None:
    with speaking(locale):
        assert day(NOON) == date
        assert day_and_time(NOON) == moment
        assert listed(["a", "b", "c"]) == three
        assert listed(["a", "b"], "or") == either
        assert listed(["a"]) == "a"


@pytest.mark.parametrize(
    ("locale", "whole", "amount", "names"),
    [
        ("en", "12,345", "12345.5", "a, b, c"), ("ja", "12,345", "12,345.5", "a、b、c"),
        ("zh-CN", "12,345", "12,345.5", "a、b、c"), ("es", "12.345", "12.345,5", "a, b, c"),
        ("pt-BR", "12.345", "12.345,5", "a, b, c"),
    ],
)  # fmt: skip
def test_numbers_and_names_are_separated_as_the_language_does(locale: str, whole: str, amount: str, names: str) -> None:
    with speaking(locale):
        assert number(12345) == whole
        assert number(10**60 + 1).translate(str.maketrans("", "", ",.")) == str(10**60 + 1), "no digit is rounded away"
        assert decimal("12345.5") == amount
        assert decimal(f"{10**40}.5").translate(str.maketrans("", "", ",.")) == f"{10**40}5"
        assert decimal("0.000000000000000001") == "0,000000000000000001".replace(",", amount[-2])
        assert series("abc") == names
        assert series(()) == sentences() == ""
        assert series(["a"]) == sentences("a") == "a"


def test_a_number_in_a_built_screen_is_written_in_each_language(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as building:
        building.setattr(locales, "_language", ContextVar("language", default=MARKED))
        built = _("Text: at most {most} characters, with Discord's markdown.").format(most=number(4096))
    assert "4096" not in built
    for locale, written in (("en", "4,096"), ("es", "4.096"), ("ja", "4,096")):
        with speaking(locale):
            assert written in in_script(built)
