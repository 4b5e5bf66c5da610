"""Wallets for another Discord account of the person: the code that hands them over, and entering one."""

import reflex as rx

from locales import _, day_and_time, ngettext
from models import transaction
from models.db.row_ids import row_id
from services.core.actors import Actor
from services.core.errors import FieldRefused, WalletNotFound
from services.privacy import wallet_handover
from state.account.wallets import WalletsState
from state.core.dialog import Dialog
from state.core.gate import public, signed_in, writes
from state.core.toasts import say

LONGEST_CODE = 40


class HandoverState(Dialog, rx.State):
    """The card about two accounts on the wallets screen."""

    giving: bool = False
    """Whether the form that hands wallets over is open."""
    wallet: str = ""
    """The id of the wallet to hand over; empty for all."""
    code: str = ""
    valid: str = ""
    """Until when the code is valid, as a sentence."""
    entered: str = ""
    fault: str = ""
    working: bool = False

    @public
    def begin(self) -> None:
        """Open the form that hands wallets over."""
        self.giving = True

    @public
    def set_wallet(self, wallet_id: str) -> None:
        """Choose the wallet to hand over; empty for all."""
        self.wallet = wallet_id[:20]
        self.code = self.valid = ""

    @public
    def set_entered(self, code: str) -> None:
        """Set the code of the other account."""
        self.entered, self.fault, self.asked = code[:LONGEST_CODE], "", ""

    @writes
    async def offer(self, actor: Actor) -> None:
        """Show a new code."""
        # No wallet has the id 0; None stands for all of them.
        wallet_id = (row_id(self.wallet) or 0) if self.wallet else None
        try:
            async with transaction() as db:
                made = await wallet_handover.offer(db, actor, wallet_id)
        except WalletNotFound:
            self.code, self.valid = "", _("This account has no such wallet.")
            return
        self.code = made.code
        said = ngettext(
            "Valid until {time}, once, for {count} wallet. Never tell it to anybody.",
            "Valid until {time}, once, for {count} wallets. Never tell it to anybody.",
            made.wallets,
        )
        self.valid = said.format(time=day_and_time(made.expires_at), count=made.wallets)

    @writes
    async def withdraw(self, actor: Actor) -> None:
        """Make the shown code invalid."""
        async with transaction() as db:
            await wallet_handover.withdraw(db, actor)
        self.code, self.valid = "", ""

    @signed_in
    async def look(self, actor: Actor) -> None:
        """Open the dialog that shows what the entered code would do."""
        self.fault = ""
        try:
            async with transaction() as db:
                found = await wallet_handover.preview(db, actor, self.entered)
        except FieldRefused as refused:
            self.fault = refused.message
            return
        count = len(found.wallets)
        asks = ngettext(
            "{count} wallet of {account} becomes yours?", "{count} wallets of {account} become yours?", count
        )
        self.asked = asks.format(count=count, account=found.account)

    @writes
    async def take(self, actor: Actor):
        """Take the wallets over."""
        if not self.asked:
            return
        self.asked, self.working = "", True
        yield
        try:
            async with transaction() as db:
                found = await wallet_handover.take(db, actor, self.entered)
            self.entered = ""
            count = len(found.wallets)
            title = ngettext("{count} wallet is yours now", "{count} wallets are yours now", count)
            text = _("Your roles come first. The other account loses the roles that only these wallets earned.")
            await say(self, title.format(count=count), text)
        except FieldRefused as refused:
            self.fault = refused.message
        finally:
            self.working = False
        yield WalletsState.read_again
