"""The Reflex app: its pages, its event gate, the REST API, and the middleware that every request passes."""

import reflex as rx
from starlette.types import ASGIApp

from app.api import api
from app.http.caller_address import Proxies
from app.http.concurrency import WithoutBody
from app.http.crawlers import Crawlers
from app.http.hosts import HostGate
from app.http.html_pages import Documents, Route
from app.http.languages import Languages
from app.http.odd_paths import OddPaths
from app.http.shutdown import Leaving
from app.http.sockets.gate import SocketGate
from app.http.static_files import BuiltFiles
from app.lifespan import lifespan
from app.pages import PAGES, PUBLIC_PAGES, add_pages, redirects
from components.layout.connection_notice import connection_notice
from components.layout.page_change import page_change
from components.pages.public.error_pages import not_found
from components.ui.toast import toaster
from locales import language_tag
from services.runtime import logs
from state.core.errors import note_report, show_fault
from state.core.gate import Gate, exists
from state.core.session import arrive, recognise, say_unread

logs.set_up()


def _documents(inner: ASGIApp) -> ASGIApp:
    routes = [Route(page.route, visitors_only=page.members is not_found) for page in PAGES if page.route != "404"]
    return Documents(inner, routes, redirects())


def _sockets(inner: ASGIApp) -> ASGIApp:
    return SocketGate(inner, exists)


def _crawlers(inner: ASGIApp) -> ASGIApp:
    return Crawlers(inner, ["/", *(page.route for page in PUBLIC_PAGES), "/login"])


def _overlay(stateful: bool) -> rx.Component:
    return rx.fragment(connection_notice(), toaster(), page_change())


def _theme_color(color: str, scheme: str) -> rx.Component:
    """Return the colour of the browser's own bars around the page."""
    return rx.el.meta(name="theme-color", content=color, custom_attrs={"media": f"(prefers-color-scheme: {scheme})"})


class App(rx.App):
    """Reflex's app, wrapped in the middleware that must run outside its router."""

    def __call__(self) -> ASGIApp:
        """Return the ASGI app that the web server runs."""
        return OddPaths(super().__call__())


app = App(
    stylesheets=["holdfast.css"],
    html_lang=language_tag(),
    toaster=None,
    head_components=[
        rx.el.link(rel="icon", href="/favicon.ico", sizes="32x32"),
        rx.el.link(rel="icon", href="/favicon.svg", type="image/svg+xml"),
        rx.el.link(
            rel="preload",
            href="/fonts/figtree.woff2",
            type="font/woff2",
            cross_origin="anonymous",
            custom_attrs={"as": "font"},
        ),
        _theme_color("#f6f2ea", "light"),
        _theme_color("#0d1716", "dark"),
    ],
    backend_exception_handler=show_fault,
    frontend_exception_handler=note_report,
    # The last is outermost: client address, concurrency, host and sockets, then the reader's language, then the API
    # with its own gates, then files and documents, then Reflex.
    api_transformer=[
        _documents,
        BuiltFiles,
        _crawlers,
        api,
        Languages,
        _sockets,
        HostGate,
        WithoutBody,
        Proxies,
        Leaving,
    ],
)
app.app_wraps[(5, "Overlay")] = _overlay
app.add_middleware(Gate(arrive, recognise, say_unread))
app.register_lifespan_task(lifespan)
add_pages(app)
