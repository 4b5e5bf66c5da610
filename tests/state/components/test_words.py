"""The specification's texts (sections 2 to 8) that a screen has in one of its states, read from its components.

The browser tests check which text shows when; these check without a browser that each text exists.
"""

from collections.abc import Callable
from functools import cache

import pytest
import reflex as rx

from components.layout import frame
from components.layout.audience import loading
from components.layout.navigation import member_bar
from components.pages.account.profile import account, account_left
from components.pages.account.wallets import wallets, wallets_left
from components.pages.dashboard.dashboard import dashboard
from components.pages.dashboard.invite import invite
from components.pages.dashboard.server_form import server_form
from components.pages.public.error_pages import oauth_error
from components.pages.public.landing import landing
from components.pages.rule_form.rule_form import rule_form

Screen = Callable[[], rx.Component]
WORDS: dict[Screen, tuple[str, ...]] = {
    landing: ("Redirecting to dashboard...", "Get Started", "Login with Discord"),
    member_bar: ("Logout", "Verify Wallets", "Invite Bot"),
    loading: ("Loading...",),
    dashboard: (
        "Welcome back, ", "Loading dashboard...", "Refresh", "Logout", "No servers configured", "Invite Bot",
        "Invite Bot to a Server",
        "Invite the bot to a server you run. Servers appear here automatically after invitation.", "Active",
        "Inactive", "Bot Active", "Configure",
        "Verification Rules", "Verified Members", "Total Verifications", "Active Rules", "Connected Servers",
    ),
    account: (
        "Discord Connected", "Verified", "User ID: ", "Username", "Email", "Discord Username", "Verified Wallets",
        "Account Status", "Pending", "Quick Actions",
    ),
    account_left: ("Access Restricted",),
    invite: (
        "Invite HoldfastBot to Your Servers", "Connect Discord First", "Owner", "Admin Access", "HoldfastBot Added",
        "Configure", "Add HoldfastBot", "Inviting...", "No Servers Found", "Refresh",
    ),
    server_form: (
        "Discord Server ID *", "Server Name *", "Server Icon URL", "Description", "Create Server", "Cancel",
        "Next Steps", "123456789012345678",
    ),
    rule_form: (
        "Rule Type", "Rule Name", "Refresh rule name", "Blockchain", "Contract Address or Collection URL",
        "Refresh collection", "Minimum Tokens", "Trait Type", "Trait Value",
        "The API could not fetch this collection's traits. Type the trait's name as the collection spells it.",
        "The API could not fetch this trait's values. Type the value as the collection spells it.",
        "Token IDs", "Add", "Role", "Cancel", "Create Rule", "Creating...", "Back",
    ),
    wallets: (
        "Back to Dashboard", "Verify New Wallet", "Wallet Address", "0x... or wallet.eth", "Verification Method",
        "OpenSea Profile Bio", "Transaction Proof", "Verify Wallet", "Verifying...",
        "Go to the OpenSea profile of this wallet.",
        "Add your code or ", " to the bio.", "Save the profile.", "Click Verify.", "Open OpenSea Profile",
        "Verified Wallets", "No verified wallets yet",
        "Verify your first wallet to start using NFT verification rules", "Verified via ",
    ),
    wallets_left: ("Please log in", "Go to Login"),
    oauth_error: ("Try Again", "Back to Home"),
}  # fmt: skip
LEADS: dict[Screen, tuple[str, ...]] = {
    landing: ("/api/auth/discord", "/features", "/help-center", "/discord", "/contact", "/privacy-policy",
              "/terms-of-service", "/#docs"),
    member_bar: ("/dashboard", "/invite", "/wallet-verification", "/help-center", "/account"),
    dashboard: ("/invite", "/server-setup"),
    account: ("/dashboard", "/invite", "/api/auth/logout"),
    account_left: ("/login",),
    invite: ("/api/auth/discord/connect", "/dashboard?server="),
    server_form: ("/dashboard",),
    wallets: ("/dashboard",),
    wallets_left: ("/login",),
    oauth_error: ("/oauth-fix", "/api/auth/discord", "/"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def bare(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A screen without bar and footer, whose texts are on every page and do not count as the screen's own."""
    if request.getfixturevalue("screen") is not landing:
        for part in ("member_bar", "visitor_bar", "footer"):
            monkeypatch.setattr(frame, part, lambda *_, **__: rx.fragment())


@cache
def written(screen: Screen) -> str:
    """Return the rendered form of a bare screen."""
    return str(screen().render()).replace("\\", "")


@pytest.mark.parametrize(
    ("screen", "words"), [(screen, one) for screen, all_ in WORDS.items() for one in all_],
    ids=lambda one: one if isinstance(one, str) else one.__name__,
)  # fmt: skip
def test_a_screen_has_its_words(screen: Screen, words: str) -> None:
    made = written(screen)
    # A text is a whole one, or part of one that is completed with values known only later.
    forms = (f'"{words}"', f"`{words}`", f"`{words}${{", f"}}{words}`", f'"{words}{{', f'}}{words}"')
    assert any(form in made for form in forms)


@pytest.mark.parametrize(
    ("screen", "path"), [(screen, one) for screen, all_ in LEADS.items() for one in all_],
    ids=lambda one: one if isinstance(one, str) else one.__name__,
)  # fmt: skip
def test_a_screen_leads_to(screen: Screen, path: str) -> None:
    made = written(screen)
    assert any(form in made for form in (f'"{path}"', f"`{path}", f"'{path}'"))
