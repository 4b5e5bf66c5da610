"""Form fields for people who hear them."""

import re
from collections.abc import Callable

import pytest
import reflex as rx

from components.pages.account.wallets import wallets
from components.pages.dashboard.server_form import server_form
from components.pages.rule_form.rule_form import rule_form
from components.pages.server_config import server_config


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
