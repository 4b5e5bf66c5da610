"""The page table: every route, what each audience sees there, and what runs when it is opened."""

from collections.abc import Callable
from dataclasses import dataclass, field

import reflex as rx
from reflex.event import EventSpec

from components.layout.audience import for_audience, for_everybody
from components.layout.frame import shared_frame, visitor_frame
from components.pages.account.login import login
from components.pages.account.profile import account, account_left
from components.pages.account.wallets import LOAD as WALLETS_LOAD
from components.pages.account.wallets import wallets, wallets_left
from components.pages.dashboard.dashboard import dashboard
from components.pages.dashboard.invite import invite
from components.pages.dashboard.server_form import server_form
from components.pages.help.deployment import deployment_status, product_setup, production_setup, replit_deployment
from components.pages.help.help_center import help_center
from components.pages.help.oauth_help import SETUP_PATH, oauth_debug, oauth_fix, oauth_setup, test_auth
from components.pages.public.contact import contact
from components.pages.public.features import features
from components.pages.public.landing import landing
from components.pages.public.policies import privacy_policy, terms_of_service
from components.pages.public.problems import not_found, oauth_error
from components.pages.public.status import status
from components.pages.rule_form.rule_form import rule_form
from components.pages.server.server_config import LOAD as SERVER_CONFIG_LOAD
from components.pages.server.server_config import server_config
from settings import settings
from state.account.preferences import MeState
from state.account.profile import AccountState
from state.core.session import SessionState
from state.dashboard.analytics import AnalyticsState
from state.dashboard.invite import InviteState
from state.dashboard.servers import DashboardState, OpenServerState
from state.help.operator import OperatorState
from state.help.problems import ProblemState
from state.help.status import PublicStatusState
from state.rule_form.rule_form import RuleFormState

Screen = Callable[[], rx.Component]
Load = Callable[[], EventSpec] | rx.event.EventType[()]

SUMMARY = (
    f"{settings().product_name} gives Discord roles to the people who hold your NFTs, and takes them back when they "
    "sell. Wallets are verified without connecting one."
)
SOCIAL_IMAGE = "/social.png"
"""1200 by 630 pixels; the server makes its URL absolute (app/http/documents.py)."""


@dataclass(frozen=True)
class Page:
    """One route. An audience without a screen of its own sees the landing page (visitors) or the 404 page (members).

    A page whose two screens are one and the same is for everybody.
    """

    route: str
    title: str = ""
    description: str = SUMMARY
    visitors: Screen = landing
    members: Screen = not_found
    left: Screen | None = None
    load: tuple[object, ...] = field(default=())

    @property
    def full_title(self) -> str:
        """The title of the browser tab."""
        return f"{self.title} · {settings().product_name}" if self.title else settings().product_name


def _shared(route: str, title: str, description: str, content: Screen, load: tuple[object, ...] = ()) -> Page:
    """A public page: the same content for everybody, with each audience's own navigation."""

    def everybody() -> rx.Component:
        return shared_frame(content())

    return Page(route, title, description, visitors=everybody, members=everybody, load=load)


def _operator(route: str, title: str, description: str, content: Screen) -> Page:
    """A help page for operators; signed-in people get a 404 there."""

    def visitors() -> rx.Component:
        return visitor_frame(content())

    return Page(route, title, description, visitors=visitors, load=(OperatorState.load,))


_NAME = settings().product_name

PUBLIC_PAGES = (
    _shared(
        "/features", "Features", f"What {_NAME} does: NFT verification without connecting a wallet, automatic roles, "
        "custom rules on seven chains, analytics. Free.", features,
    ),
    _shared(
        "/help-center", "Help Center", f"Three setup guides and ten answers: setting {_NAME} up, writing rules, "
        "verifying a wallet.", help_center,
    ),
    _shared("/contact", "Contact", f"How to reach the people behind {_NAME}: support chat and e-mail.", contact),
    _shared(
        "/privacy-policy", "Privacy Policy", f"What {_NAME} stores about you, why, for how long, and how to have it "
        "removed.", privacy_policy,
    ),
    _shared(
        "/terms-of-service", "Terms of Service", f"The terms under which {_NAME} may be used: minimum age, cost, "
        "rules for servers and members.", terms_of_service,
    ),
    _shared(
        "/status", "Status", f"Whether {_NAME} works right now: Discord, marketplaces, chains, background work.",
        status, load=(PublicStatusState.load,),
    ),
)  # fmt: skip

OPERATOR_PAGES = (
    _shared(
        "/test-auth", "Test Authentication", "Whether this browser is logged in, and which settings login uses.",
        test_auth, load=(OperatorState.load,),
    ),
    _operator(
        "/oauth-setup", "Discord OAuth Setup", "How to register the callback URL with Discord, step by step.",
        oauth_setup,
    ),
    _operator("/oauth-debug", "OAuth Debug", "The callback URL in use, and which settings have a value.", oauth_debug),
    _operator("/oauth-fix", "Fix Discord OAuth", "What to check when logging in with Discord fails.", oauth_fix),
    _operator(
        "/production-setup", "Production Setup", f"How to take {_NAME} from the sandbox to real servers.",
        production_setup,
    ),
    _operator(
        SETUP_PATH, f"{_NAME} Setup", "Both callback URLs, and six steps to register them with Discord.", product_setup,
    ),
    _operator(
        "/deployment-status", "Deployment Status", "Whether the backend answers, and what a deployment takes.",
        deployment_status,
    ),
    _operator(
        "/replit-deployment", "Replit Deployment", f"How to find, test and name a {_NAME} that runs on Replit.",
        replit_deployment,
    ),
)  # fmt: skip

_DASHBOARD = (DashboardState.load, AnalyticsState.load)


def table(*, operator_pages: bool) -> tuple[Page, ...]:
    """Return every page of the product."""
    return (
        Page("/", "Roles that hold as long as the NFT does", members=dashboard, load=_DASHBOARD),
        Page("/login", "Log in", visitors=login, members=dashboard),
        Page(
            "/oauth-error", "Authentication error", visitors=oauth_error, members=oauth_error, load=(ProblemState.load,)
        ),
        Page("/dashboard", "Dashboard", members=dashboard, load=_DASHBOARD),
        Page("/dashboard/server/[server_number]", "Server", members=dashboard, load=(OpenServerState.open,)),
        Page("/account", "Account", members=account, left=account_left, load=(AccountState.load, MeState.load)),
        Page("/invite", "Add a server", members=invite, load=(InviteState.load,)),
        Page("/server-setup", "Add a server by hand", members=server_form),
        Page("/server-config", "Server configuration", members=server_config, load=SERVER_CONFIG_LOAD),
        Page("/add-verification-rule", "Add verification rule", members=rule_form, load=(RuleFormState.load,)),
        Page("/wallet-verification", "Wallet verification", members=wallets, left=wallets_left, load=WALLETS_LOAD),
        Page("/verification", "Wallet verification", members=wallets, left=wallets_left, load=WALLETS_LOAD),
        *PUBLIC_PAGES,
        *(OPERATOR_PAGES if operator_pages else ()),
        Page("404", "Page not found"),
    )


PAGES = table(operator_pages=settings().operator_pages)


def _screen(page: Page) -> Screen:
    """Return the page's faces as one component, named after its route.

    Reflex bundles the pages whose functions come from one module. A name per route keeps each bundle to its own screen.
    """

    def screen() -> rx.Component:
        if page.visitors is page.members:
            return for_everybody(page.visitors)
        return for_audience(page.visitors, page.members, page.left)

    name = "".join(letter if letter.isalnum() else "_" for letter in page.route.strip("/")) or "landing"
    screen.__module__ = f"app.screens.{name}"
    return screen


def add_pages(app: rx.App) -> None:
    """Register every page of the table with Reflex."""
    for page in PAGES:
        app.add_page(
            _screen(page),
            route=page.route,
            title=page.full_title,
            description=page.description,
            image=SOCIAL_IMAGE,
            meta=[
                {"property": "og:title", "content": page.full_title},
                {"property": "og:description", "content": page.description},
                {"property": "og:site_name", "content": settings().product_name},
                {"property": "og:type", "content": "website"},
                {"name": "twitter:card", "content": "summary_large_image"},
            ],
            on_load=[SessionState.settle, *page.load],  # pyright: ignore[reportArgumentType]
        )
