"""A panel's texts within Discord's limits, and Discord's markdown as the preview shows it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from locales import LANGUAGES
from services.core.errors import FieldRefused
from services.guilds import panel
from services.guilds.panel_markdown import Block, blocks, runs
from services.guilds.panel_markdown import StyledRun as Run

DEFAULT = panel.default_texts()


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("title", "T" * 257, "at most 256 characters here, and this has 257"),
        ("title", "{server}" + "T" * 200, "at most 256"),
        ("text", "t" * 4097, "at most 4096 characters here, and this has 4097"),
        ("text", "{nobody} and {server}", "{nobody} is not a placeholder. You can use {server}, {bot}, {button}."),
        ("button", "b" * 81, "at most 80"),
        ("color", "red", "six hexadecimal digits"),
    ],
)
def test_what_discord_would_refuse_is_refused_with_its_field(field: str, value: str, words: str) -> None:
    with pytest.raises(FieldRefused) as refused:
        panel.checked(replace(DEFAULT, **{field: value}), "S" * 100, "1")
    assert words in refused.value.message
    assert refused.value.field == field


def test_an_empty_field_means_the_default_and_stray_characters_go() -> None:
    assert panel.checked(panel.PanelTexts(" ", "\n \n", "", ""), "Cats", "1") == DEFAULT
    given_ = panel.PanelTexts(" A\u202e\n title ", "one\r\n\r\n\r\n\r\ntwo\x07  \n", "\tGo ", "#abcdef")
    assert panel.checked(given_, "Cats", "1") == panel.PanelTexts("A title", "one\n\ntwo", "Go", "#ABCDEF")


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_default_texts_of_every_language_are_within_discords_limits(language: str) -> None:
    default = panel.default_texts(language)
    assert panel.checked(default, "S" * 100, "1" * 20) == default
    fixed = panel.fixed_texts("1" * 20, language)
    assert max(len(fixed.my_roles), len(fixed.recheck)) <= panel.LONGEST_LABEL
    assert "**{button}**" in default.text
    assert f"**{fixed.my_roles}**" in default.text
    assert f"**{fixed.recheck}**" in default.text


def test_another_language_changes_the_default_texts_alone() -> None:
    own = replace(DEFAULT, title="Welcome", color="#000000")
    ours = panel.in_language(own, "ja")
    assert (ours.title, ours.color, ours.language) == ("Welcome", "#000000", "ja")
    assert ours.text == panel.default_texts("ja").text
    assert panel.in_language(ours, "en") == own
    assert panel.in_language(own, "xx") == own, "an unknown language is English"


def test_a_name_with_braces_of_the_server_is_filled_in_once() -> None:
    texts = replace(DEFAULT, title="{server}", button="{server}")
    assert panel.filled("{server} {button} {bot}", texts, "{bot}") == "{bot} {server} HoldfastBot"


def test_texts_that_a_longer_name_of_the_server_makes_too_long_are_shortened() -> None:
    """They were checked with the name of that time; otherwise Discord would refuse every later change of the panel."""
    given = replace(DEFAULT, title="{server} " * 3, text="{server} " * 45)
    (embed,) = panel.body("1", panel.checked(given, "Cats", "1"), "C" * 100)["embeds"]
    assert (len(embed["title"]), len(embed["description"])) == (panel.LONGEST_TITLE, panel.LONGEST_DESCRIPTION)


def plain(text: str) -> tuple[Run, ...]:
    return (Run(text),)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", plain("plain")),
        ("**b** *i* _i_ __u__ ~~s~~", (
            Run("b", bold=True), Run(" "), Run("i", italic=True), Run(" "), Run("i", italic=True), Run(" "),
            Run("u", underline=True), Run(" "), Run("s", strike=True),
        )),
        ("***both***", (Run("both", bold=True, italic=True),)),
        ("**a *b* c**", (Run("a ", bold=True), Run("b", bold=True, italic=True), Run(" c", bold=True))),
        ("`*no*` \\*no\\*", (Run("*no*", kind="code"), Run(" *no*"))),
        ("snake_case_name 2 * 3 * 4 **open", plain("snake_case_name 2 * 3 * 4 **open")),
        ("[site](https://a.example) https://b.example/x.", (
            Run("site", kind="link"), Run(" "), Run("https://b.example/x", kind="link"), Run("."),
        )),
        ("[no](javascript:x)", plain("[no](javascript:x)")),
        ("<@٣> <#३>", plain("<@٣> <#३>")),
        ("<@1> <@&2> <#3> <:wave:4> ||psst||", (
            Run("@member", kind="mention"), Run(" "), Run("@role", kind="mention"), Run(" "),
            Run("#channel", kind="mention"), Run(" "), Run(":wave:", kind="mention"), Run(" "),
            Run("psst", kind="spoiler"),
        )),
    ],
)  # fmt: skip
def test_a_line_has_discords_styles(text: str, shown: tuple[Run, ...]) -> None:
    assert runs(text) == shown


def test_a_text_has_discords_blocks() -> None:
    text = "# Big\none\ntwo\n- a\n  - b\n1. first\n> said\n-# small\n```py\n**x**\n```\nend"
    assert blocks(text) == (
        Block("h1", plain("Big")),
        Block("text", (Run("one"), Run("", kind="break"), Run("two"))),
        Block("bullet", plain("a")), Block("bullet", plain("b"), depth=1), Block("number", plain("first"), "1"),
        Block("quote", plain("said")), Block("small", plain("small")), Block("code", plain("**x**")),
        Block("text", plain("end")),
    )  # fmt: skip
    assert blocks(">>> a\nb") == (Block("quote", (Run("a"), Run("", kind="break"), Run("b"))),)
    assert blocks("####") == (Block("text", plain("####")),)


@given(st.text(alphabet="ab *_~|[]()<>#-\\\n>.:/@", max_size=200))
def test_marks_may_go_and_letters_never_do(text: str) -> None:
    found = "".join(run.text for block in blocks(text) for run in block.runs)
    assert [one for one in found if one in "ab"] == [one for one in text if one in "ab"]
