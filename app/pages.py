"""The page table: every route, what each audience sees there, and what runs when it is opened."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import reflex as rx

from components.layout.audience import for_audience, for_everybody
from components.layout.frame import shared_frame, visitor_frame
from components.layout.navigation import SUPPORT_PATH
from components.layout.sandbox_banner import CONSOLE_PATH
from components.pages.account.login import login
from components.pages.account.profile import account, account_left
from components.pages.account.wallets import LOAD as WALLETS_LOAD
from components.pages.account.wallets import wallets, wallets_left
from components.pages.dashboard.dashboard import dashboard
from components.pages.dashboard.invite import invite
from components.pages.dashboard.server_form import server_form
from components.pages.help.deployment import deployment_status, production_setup, replit_deployment
from components.pages.help.help_center import help_center
from components.pages.help.oauth_help import SETUP_PATH, oauth_debug, oauth_fix, oauth_setup, product_setup, test_auth
from components.pages.public.contact import contact
from components.pages.public.error_pages import not_found, oauth_error
from components.pages.public.features import features
from components.pages.public.landing import landing
from components.pages.public.policies import privacy_policy, terms_of_service
from components.pages.public.status import status
from components.pages.rule_form.rule_form import rule_form, rule_form_left
from components.pages.server_config import LOAD as SERVER_CONFIG_LOAD
from components.pages.server_config import server_config
from components.ui.effects.by_address import in_address
from locales import _
from settings import settings
from state.account.my_data import MyDataState
from state.account.profile import AccountState
from state.core.session import MEMBER, VISITOR, SessionState
from state.dashboard.analytics import AnalyticsState
from state.dashboard.invite import InviteState
from state.dashboard.servers import DashboardState, OpenServerState
from state.help.operator import OperatorState
from state.public.chains import evm_titles
from state.public.error_pages import ProblemState
from state.public.status import PublicStatusState
from state.rule_form.reach import ReachState
from state.rule_form.rule_form import RULE_PARAMETER, RuleFormState
from state.rule_form.try_address import TrialState

Screen = Callable[[], rx.Component]

SUMMARY = _(
    "{product} gives Discord roles to the people who hold your NFTs, and takes them back when they sell. "
    "Wallets are verified without connecting one."
).format(product=settings().product_name)
SOCIAL_IMAGE = "/social.png"
"""1200 by 630 pixels; the server makes its URL absolute (app/http/html_pages.py)."""


@dataclass(frozen=True)
class Page:
    """One route. An audience without a screen of its own sees the landing page (visitors) or the 404 page (members).

    A page whose two screens are the same is for everybody.
    """

    route: str
    title: str = ""
    description: str = SUMMARY
    visitors: Screen = landing
    members: Screen = not_found
    left: Screen | None = None
    load: tuple[object, ...] = field(default=())
    retitled: tuple[rx.Var[bool], str] | None = field(default=None, compare=False)
    """When members see the screen under another title, and that title."""

    @property
    def full_title(self) -> str:
        """The title of the browser tab."""
        return f"{self.title} · {settings().product_name}" if self.title else settings().product_name


def _shared(route: str, title: str, description: str, content: Screen, load: tuple[object, ...] = ()) -> Page:
    """Return a public page, which has the same content for everybody and each audience's own navigation."""

    def everybody() -> rx.Component:
        return shared_frame(content())

    return Page(route, title, description, visitors=everybody, members=everybody, load=load)


def _operator(route: str, title: str, description: str, content: Screen) -> Page:
    """Return a help page for operators; signed-in people get a 404 there."""

    def visitors() -> rx.Component:
        return visitor_frame(content())

    return Page(route, title, description, visitors=visitors, load=(OperatorState.load,))


_NAME = settings().product_name

PUBLIC_PAGES = (
    _shared(
        "/features",
        _("Features"),
        _(
            "What {product} does: NFT verification without connecting a wallet, automatic roles, custom "
            "rules on {count} chains, analytics. Free."
        ).format(product=_NAME, count=len(evm_titles())),
        features,
    ),
    _shared(
        "/help-center",
        _("Help Center"),
        _("Three setup guides and ten answers: setting {product} up, writing rules, verifying a wallet.").format(
            product=_NAME
        ),
        help_center,
    ),
    _shared(
        "/contact",
        _("Contact"),
        _("How to reach the people behind {product}: support chat and e-mail.").format(product=_NAME),
        contact,
    ),
    _shared(
        "/privacy-policy",
        _("Privacy Policy"),
        _("What {product} stores about you, why, for how long, and how to have it removed.").format(product=_NAME),
        privacy_policy,
    ),
    _shared(
        "/terms-of-service",
        _("Terms of Service"),
        _("The terms under which {product} may be used: minimum age, cost, rules for servers and members.").format(
            product=_NAME
        ),
        terms_of_service,
    ),
    _shared(
        "/status",
        _("Status"),
        _("Whether {product} works right now: Discord, marketplaces, chains, background work.").format(product=_NAME),
        status,
        load=(PublicStatusState.load,),
    ),
)

OPERATOR_PAGES = (
    _shared(
        "/test-auth",
        _("Test Authentication"),
        _("Whether this browser is logged in, and which settings login uses."),
        test_auth,
        load=(OperatorState.load,),
    ),
    _operator(
        "/oauth-setup",
        _("Discord OAuth Setup"),
        _("How to register the callback URL with Discord, step by step."),
        oauth_setup,
    ),
    _operator(
        "/oauth-debug", _("OAuth Debug"), _("The callback URL in use, and which settings have a value."), oauth_debug
    ),
    _operator("/oauth-fix", _("Fix Discord OAuth"), _("What to check when logging in with Discord fails."), oauth_fix),
    _operator(
        "/production-setup",
        _("Production Setup"),
        _("How to take {product} from the sandbox to real servers.").format(product=_NAME),
        production_setup,
    ),
    _operator(
        SETUP_PATH,
        _("{product} Setup").format(product=_NAME),
        _("Both callback URLs, and six steps to register them with Discord."),
        product_setup,
    ),
    _operator(
        "/deployment-status",
        _("Deployment Status"),
        _("Whether the backend answers, and what a deployment takes."),
        deployment_status,
    ),
    _operator(
        "/replit-deployment",
        _("Replit Deployment"),
        _("How to find, test and name a {product} that runs on Replit.").format(product=_NAME),
        replit_deployment,
    ),
)

_DASHBOARD = (DashboardState.load, AnalyticsState.load)


def table(*, operator_pages: bool) -> tuple[Page, ...]:
    """Return every page of the product."""
    return (
        Page("/", _("Roles that hold as long as the NFT does"), members=dashboard, load=_DASHBOARD),
        Page("/login", _("Log in"), visitors=login, members=dashboard),
        Page(
            "/oauth-error",
            _("Authentication error"),
            visitors=oauth_error,
            members=oauth_error,
            load=(ProblemState.load,),
        ),
        Page("/dashboard", _("Dashboard"), members=dashboard, load=_DASHBOARD),
        Page("/dashboard/server/[server_number]", _("Server"), members=dashboard, load=(OpenServerState.open,)),
        Page("/account", _("Account"), members=account, left=account_left, load=(AccountState.load, MyDataState.load)),
        Page("/invite", _("Add a server"), members=invite, load=(InviteState.load,)),
        Page("/server-setup", _("Add a server by hand"), members=server_form),
        Page("/server-config", _("Server configuration"), members=server_config, load=SERVER_CONFIG_LOAD),
        Page(
            "/add-verification-rule",
            _("Add verification rule"),
            members=rule_form,
            left=rule_form_left,
            load=(RuleFormState.load, TrialState.follow, ReachState.follow),
            retitled=(in_address(RULE_PARAMETER), _("Edit verification rule")),
        ),
        Page("/wallet-verification", _("Wallet verification"), members=wallets, left=wallets_left, load=WALLETS_LOAD),
        Page("/verification", _("Wallet verification"), members=wallets, left=wallets_left, load=WALLETS_LOAD),
        *PUBLIC_PAGES,
        *(OPERATOR_PAGES if operator_pages else ()),
        Page("404", _("Page not found")),
    )


PAGES = table(operator_pages=settings().operator_pages)


def redirects() -> dict[str, str]:
    """Return the paths that lead elsewhere, and where to."""
    found = {SUPPORT_PATH: settings().support_invite or "/contact"}
    if settings().sandbox:
        found[CONSOLE_PATH] = f"{settings().sandbox_url}/console"
    return found


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


def _title(page: Page) -> str | rx.Var[str]:
    """Return the title of the browser tab: that of the page which an audience sees in this one's place."""
    first, missing = (next(one for one in PAGES if one.route == route) for route in ("/", "404"))
    found: list[tuple[rx.Var[bool] | bool, Page]] = []
    if page.visitors is landing and page is not first:
        found.append((SessionState.audience == VISITOR, first))
    if page.members is not_found and page is not missing:
        found.append((SessionState.audience == MEMBER, missing))
    if page.retitled is not None:
        seen, title = page.retitled
        found.append((seen, replace(page, title=title)))
    shown: Any = page.full_title
    for seen, instead in reversed(found):
        shown = rx.cond(seen, instead.full_title, shown)
    return shown


def add_pages(app: rx.App) -> None:
    """Register every page of the table with Reflex."""
    for page in PAGES:
        ended = [SessionState.say_ended] if page.visitors is landing and page.route not in {"/", "404"} else []
        app.add_page(
            _screen(page),
            route=page.route,
            title=_title(page),
            description=page.description,
            image=SOCIAL_IMAGE,
            meta=[
                {"property": "og:title", "content": page.full_title},
                {"property": "og:description", "content": page.description},
                {"property": "og:site_name", "content": settings().product_name},
                {"property": "og:type", "content": "website"},
                {"name": "twitter:card", "content": "summary_large_image"},
            ],
            on_load=[SessionState.settle, *ended, *page.load],  # pyright: ignore[reportArgumentType]
        )
