"""A person's sessions, where their wallets count, and the deletion of their data."""

from dataclasses import dataclass
from typing import Any

import reflex as rx

from gateways import gateways
from locales import _, day_and_clock, series
from models import transaction
from models.db.row_ids import row_id
from services.accounts import sessions, sign_in
from services.core.actors import Actor
from services.privacy import erasure, preferences
from services.privacy.erasure import EndingRole
from services.runtime import rate_limits
from services.wallets import wallets
from state.core.gate import signed_in, writes
from state.core.retry import ask
from state.core.session import SessionState
from state.core.toasts import say

CONFIRMATION = "delete"
"""The word to type before data is deleted."""


@dataclass(frozen=True)
class SessionRowView:
    """A signed-in browser."""

    id: str
    browser: str
    seen: str
    since: str
    current: bool


@dataclass(frozen=True)
class ChoiceRowView:
    """A server of the person, and their choices there."""

    server_id: int
    name: str
    icon_url: str
    use_wallets: bool
    share_wallets: bool
    roles: str
    payout: str
    """The id of the wallet for payouts, or empty."""
    downloads: list[str]
    """The admins who downloaded the address, each with the time."""


@dataclass(frozen=True)
class PayoutWalletView:
    """A wallet that the person can choose for payouts."""

    id: str
    address: str


class MyDataState(rx.State):
    """The account screen, apart from the profile."""

    loaded: bool = False
    failed: bool = False
    sessions: list[SessionRowView] = []
    choices: list[ChoiceRowView] = []
    payout_wallets: list[PayoutWalletView] = []
    ending: list[EndingRole] = []
    asked: bool = False
    typed: str = ""
    working: bool = False
    forgotten: bool = False

    @signed_in
    async def load(self, actor: Actor) -> None:
        """Read the sessions, choices and roles."""
        self.asked, self.typed, self.failed = False, "", not self.loaded

        async def read(db: Any) -> tuple[list[SessionRowView], list[ChoiceRowView], list[wallets.WalletView]]:
            mine, choices = await sessions.list_of(db, actor), await preferences.choices(db, actor)
            held = await wallets.list_wallets(db, actor)
            return [_session(one) for one in mine], [_choice(one) for one in choices], held

        self.sessions, self.choices, held = await ask(read)
        self.payout_wallets = [PayoutWalletView(str(one.id), one.short_address) for one in held if one.only_on is None]
        self.loaded, self.failed = True, False

    @writes
    async def sign_out(self, actor: Actor, session: str) -> None:
        """End one of the other sessions; nothing if a first click has ended it."""
        if all(one.id != session for one in self.sessions):
            return
        async with transaction() as db:
            token = await sign_in.sign_out_one(db, actor, session)
            self.sessions = [_session(one) for one in await sessions.list_of(db, actor)]
        # Discord's token, if this browser was logged out at the same moment.
        await sign_in.revoke(gateways(), token)
        await say(self, _("Logged out"), _("That browser is logged out."))

    @writes
    async def use_wallets(self, actor: Actor, server_id: int, use: bool) -> None:
        """Count the person's wallets in a server, or stop counting them."""
        chosen = await self._choose(actor, server_id, use=use)
        if use:
            said = _("Your wallets count in {server}. Roles they earn follow within moments.")
        else:
            said = _("Your wallets no longer count in {server}. The server's rules decide when their roles are taken.")
        await say(self, _("Saved"), said.format(server=chosen.name))

    @writes
    async def share_wallets(self, actor: Actor, server_id: int, share: bool) -> None:
        """Show the person's shortened addresses to a server's admins, or stop showing them."""
        chosen = await self._choose(actor, server_id, share=share)
        sees = _("Admins of {server} see your shortened addresses.")
        said = sees if share else _("Admins of {server} no longer see your addresses.")
        await say(self, _("Saved"), said.format(server=chosen.name))

    @writes
    async def choose_payout(self, actor: Actor, server_id: int, wallet: str) -> None:
        """Put one of the person's wallets on a server's airdrop list, or withdraw it."""
        # No wallet has the id 0; None withdraws.
        wallet_id = (row_id(wallet) or 0) if wallet else None
        chosen = await self._choose(actor, server_id, payout=preferences.PayoutChoice(wallet_id))
        if wallet_id is None:
            said = _("{server} has no address of yours for payouts any more.")
        else:
            said = _("Admins of {server} can download this address with what you hold.")
        await say(self, _("Saved"), said.format(server=chosen.name))

    async def _choose(
        self,
        actor: Actor,
        server_id: int,
        *,
        use: bool | None = None,
        share: bool | None = None,
        payout: preferences.PayoutChoice | None = None,
    ) -> preferences.ChoiceView:
        async with transaction() as db:
            chosen = await preferences.choose(db, actor, server_id, use_wallets=use, share_wallets=share, payout=payout)
        self.choices = [_choice(chosen) if one.server_id == server_id else one for one in self.choices]
        return chosen

    @signed_in
    async def ask_forget(self, actor: Actor) -> None:
        """Open the dialog that explains the deletion."""
        await rate_limits.spend(rate_limits.PREVIEWS, actor.user_id)
        async with transaction() as db:
            self.ending = list(await erasure.consequences(db, actor))
        self.asked, self.typed = True, ""

    @signed_in
    async def type_confirmation(self, actor: Actor, value: str) -> None:
        """Store the text in the confirmation field."""
        self.typed = value[:40]

    @signed_in
    async def close_dialog(self, actor: Actor, is_open: bool) -> None:
        """Close the dialog."""
        self.asked = is_open

    @writes
    async def forget(self, actor: Actor):
        """Delete everything about the person and end the session."""
        if not self.asked or self.typed.strip().lower() != CONFIRMATION:
            return
        self.working = True
        yield
        try:
            async with transaction() as db:
                gone = await erasure.forget(db, actor)
        finally:
            self.working = False
        self.ending = list(gone.roles)
        self.asked, self.forgotten = False, True
        (await self.get_state(SessionState)).left()
        await sign_in.revoke(gateways(), gone.token)


def _session(session: sessions.SessionView) -> SessionRowView:
    return SessionRowView(
        id=session.id,
        browser=sessions.name_of(session.user_agent),
        seen=day_and_clock(session.seen_at),
        since=day_and_clock(session.created_at),
        current=session.current,
    )


def _choice(choice: preferences.ChoiceView) -> ChoiceRowView:
    return ChoiceRowView(
        server_id=choice.server_id,
        name=choice.name,
        icon_url=choice.icon_url or "",
        use_wallets=choice.use_wallets,
        share_wallets=choice.share_wallets,
        roles=series(choice.roles),
        payout="" if choice.payout_wallet_id is None else str(choice.payout_wallet_id),
        downloads=[f"{one.by}, {day_and_clock(one.at)}" for one in choice.payout_downloads],
    )
