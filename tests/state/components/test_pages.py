"""Every page in the table can be built, and states its audience."""

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import reflex as rx
from reflex.route import verify_route_validity

from app.app import app
from app.http.html_pages import Route
from app.pages import OPERATOR_PAGES, PAGES, Page, _title, table
from components.pages.help.oauth_help import SETUP_PATH
from components.pages.public.error_pages import not_found
from components.pages.public.landing import landing
from components.pages.rule_form.rule_form import rule_form
from components.pages.server import activity, members, move
from services.accounts.return_paths import MEMBERS_ROUTES, ROUTES
from setting_checks import setup_path
from settings import ROOT, settings
from state.server.move import MoveState


@cache
def made(screen: Callable[[], rx.Component]) -> rx.Component:
    """Return a screen, which several pages show and several tests read."""
    return screen()


@cache
def written(screen: Callable[[], rx.Component]) -> str:
    """Return a screen's code."""
    return str(made(screen))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.route)
def test_each_page_of_the_table_is_made(page: Page, caplog: pytest.LogCaptureFixture) -> None:
    assert isinstance(made(page.visitors), rx.Component)
    assert isinstance(made(page.members), rx.Component)
    assert page.left is None or isinstance(made(page.left), rx.Component)
    assert caplog.text == "", "no icon that does not exist, nothing else that Reflex mends with a warning"


@pytest.mark.parametrize("page", [page for page in PAGES if page.left], ids=lambda page: page.route)
def test_the_screen_of_an_ended_session_has_a_main_heading(page: Page) -> None:
    assert page.left is not None
    assert 'jsx("h1"' in written(page.left)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.route)
def test_the_title_of_a_page_is_that_of_what_an_audience_sees_there(page: Page) -> None:
    title = str(_title(page))
    assert page.title in title
    assert ("Roles that hold as long as the NFT does" in title) is (page.visitors is landing)
    assert ("Page not found" in title) is (page.members is not_found)
    assert ("Edit verification rule" in title) is (page.members is rule_form)


@pytest.mark.parametrize("pages", [members._list, activity._list])
def test_the_buttons_that_turn_pages_wrap_on_a_narrow_phone(pages: Callable[[], rx.Component]) -> None:
    classes = re.findall(r'className:"([^"]*)"', str(pages()).partition('jsx("nav"')[2])
    rows = [one for one in classes if "gap-2" in one or "justify-between" in one]
    assert len(rows) == 2
    assert all("flex-wrap" in one for one in rows)


def test_names_are_shown_below_the_number_of_the_role_that_was_pressed() -> None:
    """Below a list of 50 roles nobody would see that a press has shown something."""
    of_a_role = str(rx.foreach(MoveState.roles, move._role))
    under = r'named_role_rx_state_\?\.valueOf\?\.\(\) === role_rx_state_\?\.\["id"\][^:]*?"div",.{,200}named_title'
    assert re.search(under, of_a_role)


def test_no_two_pages_have_one_address() -> None:
    routes = [page.route for page in PAGES]
    assert len(routes) == len(set(routes))
    assert len(app._unevaluated_pages) == len(routes)


def test_the_operators_help_pages_can_be_left_out() -> None:
    left_out = {page.route for page in PAGES} - {page.route for page in table(operator_pages=False)}
    assert left_out == {page.route for page in OPERATOR_PAGES}
    assert {"/oauth-debug", "/test-auth", SETUP_PATH} <= left_out


def test_a_sign_in_may_return_to_every_page_of_the_table_and_to_nothing_else() -> None:
    assert sorted(ROUTES) == sorted(page.route for page in PAGES if page.route != "404")
    members_only = [page.route for page in PAGES if page.visitors is landing and page.route not in {"/", "404"}]
    assert sorted(MEMBERS_ROUTES) == sorted(members_only)


@pytest.mark.parametrize(
    ("route", "path", "matches"),
    [
        ("/", "/", True),
        ("/login", "/login", True),
        ("/login", "/login/more", False),
        ("/dashboard/server/[server_number]", "/dashboard/server/7", True),
        ("/dashboard/server/[server_number]", "/dashboard/server", False),
        ("/dashboard/server/[server_number]", "/dashboard/server/7/8", False),
        ("/dashboard", "/dashboardx", False),
    ],
)
def test_an_address_of_the_table_matches_whole_paths(route: str, path: str, matches: bool) -> None:
    assert Route(route, visitors_only=False).matches(path) is matches


def test_every_stylesheet_and_font_is_served_from_here() -> None:
    css = (ROOT / "assets" / "holdfast.css").read_text()
    assert 'url("http' not in css
    assert "url(http" not in css
    for name in ("figtree", "bricolage-grotesque"):
        assert (ROOT / "assets" / "fonts" / f"{name}.woff2").exists()
        assert Path(ROOT / "assets" / "fonts" / f"LICENSE-{name}.txt").exists()


def test_the_browsers_own_bars_have_the_colour_of_the_page() -> None:
    css = (ROOT / "assets" / "holdfast.css").read_text()
    grounds = re.findall(r"color-scheme: (light|dark);[^}]*?--color-base-200: (#[0-9a-f]{6});", css)
    metas: list[Any] = [part for part in app.head_components if getattr(part, "name", None) is not None]
    said = {str(meta.custom_attrs["media"]): str(meta.content) for meta in metas}
    assert {scheme for scheme, _ in grounds} == {"light", "dark"}
    for scheme, color in grounds:
        assert color in said[f"(prefers-color-scheme: {scheme})"], f"the {scheme} page is {color}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.route)
def test_a_field_whose_text_the_state_keeps_loses_no_key_on_a_slow_connection(page: Page) -> None:
    screens = written(page.members) + written(page.visitors)
    bare = {one for one in _fields("input|textarea", screens) if "onChange:" in one}
    assert [one for one in bare if re.search(r"(^|,)value:", one) and 'type:"checkbox"' not in one] == []
    # A choice jumps back and forth, except where the jump back says that it was not stored.
    stored_at_once = {one for one in _fields("select", screens) if "Address for payouts" in one}
    assert set(_fields("select", screens)) == stored_at_once


def _fields(tags: str, screen: str) -> Iterator[str]:
    """Yield the properties of each element of these tags that React itself keeps at its value."""
    for found in re.finditer(rf'jsx\("(?:{tags})",\{{', screen):
        depth, end = 1, found.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(screen[end], 0)
            end += 1
        yield screen[found.end() : end - 1]


@pytest.mark.parametrize(
    ("product", "path"),
    [
        ("Holdfast", "/holdfast-setup"), ("Hold Fast_2", "/hold-fast_2-setup"), ("Löwe", "/lowe-setup"),
        ("Bob's NFT.club!", "/bob-s-nft-club-setup"), ("日本", "/product-setup"), ("Server", "/product-setup"),
    ],
)  # fmt: skip
def test_the_setup_page_of_a_product_of_any_name_has_a_path_that_reflex_takes(product: str, path: str) -> None:
    assert setup_path(product) == path
    verify_route_validity(path)


def test_no_product_has_a_setup_page_with_the_path_of_another_page() -> None:
    own = setup_path(settings().product_name)
    others = {
        route.removeprefix("/").removesuffix("-setup") for route in ROUTES if route.endswith("-setup") and route != own
    }
    assert others == {"oauth", "production", "server"}
    assert {setup_path(name) for name in others} == {"/product-setup"}
