"""Form fields for people who hear them."""

import ast
import re
from collections.abc import Callable, Iterable, Iterator

import pytest
import reflex as rx

from components.pages.account.wallets import wallets
from components.pages.dashboard import invite
from components.pages.dashboard.server_form import server_form
from components.pages.rule_form.rule_form import rule_form
from components.pages.server_config import server_config
from settings import ROOT
from state.dashboard.invite import InviteState

SCREENS = sorted((ROOT / "components").rglob("*.py"))
BUTTONS = {"button": True, "link_button": True, "rx.el.button": False, "rx.el.a": False}
"""The functions that make a button or a link, and whether only the first argument is its label."""


@pytest.mark.parametrize("screen", [rule_form, server_config, server_form, wallets])
def test_a_control_is_described_by_its_hint_and_its_error(screen: Callable[[], rx.Component]) -> None:
    code = str(screen())
    words = set(re.findall(r'\bid:"([^"]+-(?:hint|error))"', code))
    described = set(" ".join(re.findall(r'"aria-describedby":"([^"]+)"', code)).split())
    assert words
    assert words - described == set()


@pytest.mark.parametrize("screen", [rule_form, server_config, wallets])
def test_a_control_with_an_error_is_marked_as_invalid(screen: Callable[[], rx.Component]) -> None:
    code = str(screen())
    errors = set(re.findall(r'\bid:"([^"]+-error)"', code))
    marked = set(" ".join(re.findall(r'"aria-describedby":"([^"]+)","aria-invalid":', code)).split())
    assert errors
    assert errors - marked == set()


def test_a_button_in_a_list_names_what_it_is_about() -> None:
    """Read aloud one after the other, twenty buttons that all say Delete would be the same."""
    nameless = [
        f"{path.name}:{call.lineno}" for path in SCREENS for call in nameless_calls(ast.parse(path.read_text()))
    ]
    assert nameless == []


def test_a_button_that_adds_the_bot_is_read_aloud_as_what_it_says_while_it_does() -> None:
    said = re.findall(r'"aria-label":(.*?),className', str(rx.foreach(InviteState.guilds, invite._server)))
    assert len(said) == 2
    assert "Configure" in said[0]
    assert "Inviting..." in said[1]
    assert "Add " in said[1]


def nameless_calls(module: ast.AST) -> Iterator[ast.Call]:
    """Yield buttons and links that act on one row of a list without a word about the row in what is read aloud."""
    for function in ast.walk(module):
        if isinstance(function, ast.FunctionDef):
            rows = {
                one.arg for one in function.args.args if one.annotation and "ObjectVar" in ast.unparse(one.annotation)
            }
            for call in ast.walk(function):
                if isinstance(call, ast.Call) and ast.unparse(call.func) in BUTTONS:
                    props = {one.arg: one.value for one in call.keywords}
                    said = [*call.args[: 1 if BUTTONS[ast.unparse(call.func)] else None], props.get("aria_label")]
                    acts = [*call.args[1:], props.get("on_click"), props.get("href"), props.get("disabled")]
                    if names(rows, acts) and not names(rows, said):
                        yield call


def names(rows: set[str], parts: Iterable[ast.AST | None]) -> bool:
    """Return whether one of these parts of a call is about a row."""
    return any(
        isinstance(inside, ast.Name) and inside.id in rows for part in parts if part for inside in ast.walk(part)
    )
