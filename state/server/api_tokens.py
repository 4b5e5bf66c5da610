"""The API tokens of a server on its Developers tab: the list, the form for a new one, and revoking one."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, ClassVar

import reflex as rx

from gateways import gateways
from locales import _, day, listed
from models import now, transaction
from services.accounts.developers import api_tokens, webhooks
from services.accounts.developers.api_tokens import SCOPES, ApiTokenView
from services.accounts.developers.webhooks import WebhookView
from services.core.actors import Actor
from services.core.errors import HoldfastError
from services.core.relative_times import ago
from state.core.dialog import RowDialog
from state.core.form_fault import FormFault
from state.core.gate import public, writes
from state.core.toasts import say
from state.dashboard.server_page import ServerPageState, ServerTab, after_change
from state.server.webhook import SwitchView, WebhookState

LIVES = ("30", "90", "365")
"""Days that a token may live, as offered."""
USUAL = "90"
LONGEST_TYPED = 200


@dataclass(frozen=True)
class TokenRowView:
    """A token of the list; `state` is as in `ApiTokenView`."""

    id: int
    name: str
    prefix: str
    state: str
    scopes: str
    origin: str
    use: str


class ApiTokensState(FormFault, RowDialog, ServerTab, rx.State):
    """The tokens, the form for a new one, and the dialog before one is revoked."""

    rows: list[TokenRowView] = []
    is_open: bool = False
    """Whether the form is open."""
    name: str = ""
    choices: list[SwitchView] = []
    life: str = USUAL
    token: str = ""
    """The token that was just created; shown until the admin has it."""
    asked_name: str = ""
    working: bool = False
    _token_id: int = 0
    _tab: ClassVar[str] = "developers"

    async def _read(self, actor: Actor, page: ServerPageState) -> None:
        async def read(db: Any) -> tuple[tuple[ApiTokenView, ...], WebhookView | None]:
            found = await api_tokens.list_of(db, gateways(), actor, page.server_id)
            return found, await webhooks.find(db, gateways(), actor, page.server_id)

        if (seen := await self._tried(page, read)) is None:
            return
        self.rows = [_row(one) for one in seen[0]]
        if self.shown_for != page.server_id:
            self._close()
            self.token = ""
        (await self.get_state(WebhookState))._open(page.server_id, seen[1])
        self.shown_for = page.server_id

    def _close(self) -> None:
        self.is_open, self.name, self.life, self.asked_id = False, "", USUAL, 0
        self._clear_fault()

    @public
    def open_form(self) -> None:
        """Show the form for a new token."""
        self._close()
        self.choices, self.is_open = _choices(), True

    @public
    def close_form(self) -> None:
        """Hide the form."""
        self._close()

    @public
    def hide(self) -> None:
        """Hide the new token; nobody can read it again."""
        self.token = ""

    @public
    def set_name(self, value: str) -> None:
        """Name the new token."""
        self.name = value[:LONGEST_TYPED]

    @public
    def set_life(self, value: str) -> None:
        """Choose when the new token expires."""
        self.life = value if value in LIVES else USUAL

    @public
    def choose(self, key: str, chosen: bool) -> None:
        """Give the new token a scope, or leave it out."""
        self.choices = [replace(one, chosen=chosen) if one.key == key else one for one in self.choices]

    @writes
    async def create(self, actor: Actor):
        """Create the token and show it this once."""
        if not self.is_open:
            return  # The second click of a double click would find no name.
        self.working = True
        self._clear_fault()
        yield
        try:
            page = await self._page()
            scopes = [one.key for one in self.choices if one.chosen]
            end = now() + timedelta(days=int(self.life))
            async with transaction() as db:
                made = await api_tokens.create(db, gateways(), actor, page.server_id, self.name, scopes, end)
            self._close()
            self.token, self._token_id = made.token, made.view.id
            await after_change(self._read(actor, page))
        except HoldfastError as fault:
            await self._show_fault(_("Token not created"), fault)
        finally:
            self.working = False

    @public
    def ask(self, token_id: int) -> None:
        """Open the dialog before a token is revoked."""
        row = next((one for one in self.rows if one.id == token_id), None)
        self.asked_id, self.asked_name = (row.id, row.name) if row is not None else (0, "")

    @writes
    async def revoke(self, actor: Actor):
        """Revoke the token that the dialog asks about."""
        token_id, self.asked_id = self.asked_id, 0
        if not token_id:
            return
        self.working = True
        yield
        try:
            page = await self._page()
            async with transaction() as db:
                await api_tokens.revoke(db, gateways(), actor, page.server_id, token_id)
            if token_id == self._token_id:
                self.token = ""
            await say(self, _("Token revoked"), _("No program can use it any more."))
            await after_change(self._read(actor, page))
        finally:
            self.working = False


def _choices() -> list[SwitchView]:
    texts = {
        "read": (
            _("Read the server"),
            _("Rules, health, the move and its numbers; no member and no address of a list."),
        ),
        "rules": (_("Change rules"), _("Rules, lists, moves and held-back removals; checking everybody again.")),
        "members": (
            _("Members"),
            _("Members, the log, payout addresses, shared wallets; checking and protecting a member."),
        ),
    }
    return [SwitchView(one, *texts[one], chosen=one == "read") for one in SCOPES]


def _row(one: ApiTokenView) -> TokenRowView:
    labels = {choice.key: choice.label for choice in _choices()}
    origin = _("By {name} on {day}; expires on {end}").format(
        name=one.created_by, day=day(one.created_at), end=day(one.expires_at)
    )
    use = _("Never used") if one.used_at is None else _("Last used {time}").format(time=ago(one.used_at))
    return TokenRowView(
        one.id, one.name, one.prefix, one.state, listed([labels[scope] for scope in one.scopes]), origin, use
    )
