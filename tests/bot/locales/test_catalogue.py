"""Every language has every text, and a translation keeps the meaning of the English text."""

import ast
import re
import string
from collections.abc import Callable
from functools import cache

import pytest
from babel.messages.catalog import Catalog, Message
from babel.messages.pofile import read_po

from bot.client import build
from bot.commands.verify import claim_form, hash_form
from bot.interaction.forms import Form
from locales import ENGLISH, FOLDER, LANGUAGES, speaking
from sandbox.discord.forms.commands import command
from tools.texts import ROOT, TEMPLATE, collected

TRANSLATED = LANGUAGES[1:]
TYPED = re.compile(r"/([\w-]+)\*\*")
"""A command in a text, such as `**/why**`."""


@cache
def entries(language: str) -> Catalog:
    """Return the catalogue of a language."""
    with (FOLDER / f"{language}.po").open("rb") as file:
        return read_po(file, locale=language.replace("-", "_"))


def texts(catalog: Catalog) -> dict[tuple[str | None, str], Message]:
    """Return the entries of a catalogue by their context and English text."""
    return {(one.context, str(one.id)): one for one in catalog if one.id}


@cache
def template() -> dict[tuple[str | None, str], Message]:
    """Return the entries of the template, which has the texts of the code."""
    with TEMPLATE.open("rb") as file:
        return texts(read_po(file))


def forms(words: object) -> list[str]:
    """Return the text of a message, or both plural forms."""
    return [str(one) for one in words] if isinstance(words, list | tuple) else [str(words)]


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def wrong(one: Message) -> str | None:
    """Return what is wrong with an entry, or None."""
    if one.fuzzy or not all(forms(one.string)):
        return "not translated"
    wanted = set[str]().union(*(placeholders(each) for each in forms(one.id)))
    for each in forms(one.string):
        # One form may omit the number: "one file".
        if not placeholders(each) <= wanted or (isinstance(one.id, str) and placeholders(each) != wanted):
            return f"has {sorted(placeholders(each))}, not {sorted(wanted)}"
        if each.count("**") % 2 or each.count("```") % 2:
            return "opens markup that it does not close"
    return None


def test_the_template_has_the_texts_of_the_code() -> None:
    assert template().keys() == texts(collected()).keys(), "make texts"


def test_five_languages_are_there() -> None:
    assert set(LANGUAGES) >= {ENGLISH, "ja", "zh-CN", "es", "pt-BR"}


@pytest.mark.parametrize("language", TRANSLATED)
def test_a_language_has_every_text_with_its_placeholders(language: str) -> None:
    wanted = template()
    found = texts(entries(language))
    assert found.keys() == wanted.keys(), "make texts"
    faults = [f"{key[1]!r} {fault}" for key, one in found.items() if (fault := wrong(one))]
    assert faults == []


@cache
def built_sentences() -> set[str]:
    """Return the texts that screens split to insert links and code."""
    calls = (
        node.args[0]
        for path in (ROOT / "components").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "sentence"
    )
    return {str(ast.literal_eval(text.args[0])) for text in calls if isinstance(text, ast.Call)}


def test_a_text_is_a_whole_sentence_or_name() -> None:
    # A text that is cut at a link or a number fits only English word order.
    pieces = [text for _, text in template() if re.match(r"[\s.,;:)”]", text) or re.search(r"[\s(“]$", text)]
    assert pieces == []


@pytest.mark.parametrize("language", TRANSLATED)
def test_what_a_screen_puts_into_a_sentence_keeps_its_order(language: str) -> None:
    sentences, catalog = built_sentences(), entries(language)
    assert len(sentences) > 30
    for text in sentences:
        entry = catalog.get(text)
        assert entry is not None, text
        said, order = str(entry.string), r"\{(\w+)\}"
        assert re.findall(order, said) == re.findall(order, text), said


KANA, HAN = "[\u3041-\u30ff]", "[\u4e00-\u9fff]"


@pytest.mark.parametrize(
    ("language", "strange"),
    [("zh-CN", KANA), ("es", f"{KANA}|{HAN}"), ("pt-BR", f"{KANA}|{HAN}|[ñ¿¡]"), ("ja", "[ãõñ¿¡]")],
)
def test_no_entry_is_in_the_script_of_another_language(language: str, strange: str) -> None:
    said = {str(one.id): form for one in entries(language) if one.id for form in forms(one.string)}
    assert [text for text, form in said.items() if re.search(strange, form)] == []


@pytest.mark.parametrize(
    ("text", "said", "right"),
    [
        ("You have {count}", "Tienes {count}", True),
        ("You have {count}", "", False),
        ("You have {count}", "Tienes {number}", False),
        ("You have {count}", "Tienes", False),
        ("**bold**", "**negrita", False),
        (("{count} file", "{count} files"), ("un archivo", "{count} archivos"), True),
        (("{count} file", "{count} files"), ("{count} archivo", ""), False),
        (("{count} file", "{count} files"), ("{count} archivo", "{n} archivos"), False),
    ],
)
def test_a_wrong_entry_is_seen(text: str | tuple[str, str], said: str | tuple[str, str], right: bool) -> None:
    assert (wrong(Message(text, said)) is None) is right


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_question_quotes_the_name_that_a_person_chose(language: str) -> None:
    """A rule may be called "X or Y": without quotes nobody sees where the name ends."""
    catalog = template() if language == ENGLISH else texts(entries(language))
    for (_, asked), one in template().items():
        names = placeholders(asked) & {"name", "role"}
        if names and asked.endswith("?"):
            said = asked if language == ENGLISH else str(catalog[one.context, asked].string)
            assert all(re.search(rf"[“«「]{{{name}}}[”»」]", said) for name in names), (asked, said)


@pytest.mark.parametrize("language", TRANSLATED)
def test_a_text_names_commands_as_its_language_does(language: str) -> None:
    catalog = entries(language)
    names = {str(one.id): str(one.string) for one in catalog if one.context == "command"}
    for one in catalog:
        for text, said in zip(forms(one.id), forms(one.string), strict=False):
            assert [names[name] for name in TYPED.findall(text)] == TYPED.findall(said), said


async def test_discord_takes_the_commands_in_every_language() -> None:
    bot = build()
    try:
        for one in bot.get_all_application_commands():
            payload = command(one.get_payload(None))
            for each in (payload, *payload.get("options", [])):
                assert set(each["name_localizations"]) >= {"es-ES", "es-419", "ja", "pt-BR", "zh-CN"}, each["name"]
                assert set(each["description_localizations"]) >= {"es-ES", "es-419", "ja", "pt-BR", "zh-CN"}
                assert not {"en-US", "en-GB"} & set(each["name_localizations"])
    finally:
        await bot.close()


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("form", [claim_form, lambda: hash_form("0x" + "ab" * 20)])
async def test_forms_are_within_discords_limits(language: str, form: Callable[[], Form]) -> None:
    with speaking(language):
        shown = form().to_dict()
    assert len(shown["title"]) <= 45
    for part in shown["components"]:
        assert len(part["label"]) <= 45, part["label"]
        assert len(part["description"]) <= 100, part["description"]
        for option in part["component"].get("options", []):
            assert len(option["label"]) <= 100
            assert len(option["description"]) <= 100
