"""The webhook of a server on its Developers tab: its form, its secret, shown once, and its last deliveries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import reflex as rx

from gateways import gateways
from locales import _, day_and_minute, day_and_time, ngettext
from models import transaction
from services.accounts.developers import webhooks
from services.accounts.developers.webhooks import EVENTS, MOST_COUNTED, TEST, DeliveryView, WebhookView
from services.core.actors import Actor
from services.core.errors import HoldfastError, WebhookNotFound
from services.core.relative_times import ago
from services.runtime import rate_limits
from state.core.dialog import Dialog
from state.core.form_fault import FormFault
from state.core.gate import public, signed_in, writes
from state.core.toasts import refuse, say
from state.dashboard.server_page import ServerPageState, after_change, open_tab, page_of

DELETE, NEW_SECRET = "delete", "secret"
"""What a dialog asks about."""
LONGEST_TYPED = 2_000


@dataclass(frozen=True)
class SwitchView:
    """An event or a scope to choose, with a switch."""

    key: str
    label: str
    hint: str
    chosen: bool


@dataclass(frozen=True)
class DeliveryRowView:
    """A delivery of the list; `tone` is good, warning, bad or off."""

    id: str
    event: str
    tone: str
    state: str
    time: str
    detail: str


class WebhookState(FormFault, Dialog, rx.State):
    """The card with the webhook."""

    is_set: bool = False
    url: str = ""
    events: list[str] = []
    """The chosen events, in words."""
    status: str = ""
    trouble: str = ""
    overlap: str = ""
    deliveries: list[DeliveryRowView] = []

    editing: bool = False
    typed: str = ""
    choices: list[SwitchView] = []
    secret: str = ""
    """The secret that was just made; shown until the admin has it."""
    saving: bool = False
    working: bool = False
    _chosen: list[str] = []
    _shown_for: int = 0

    def _open(self, server_id: int, found: WebhookView | None) -> None:
        """Show the webhook, but keep the text that an admin has typed meanwhile for the same server."""
        if self._shown_for != server_id:
            self._shown_for, self.secret = server_id, ""
            self._close()
        self.is_set = found is not None
        if found is None:
            self.url, self._chosen, self.deliveries = "", [], []
            self.status = self.trouble = self.overlap = ""
        else:
            self.url, self._chosen = found.url, list(found.events)
            self.deliveries = [_row(one) for one in found.deliveries]
            self.status, self.trouble, self.overlap = _status(found), _trouble(found), _overlap(found)
        self.events = [_titles()[one][0] for one in self._chosen]

    def _close(self) -> None:
        self.editing, self.asked = False, ""
        self._clear_fault()

    @signed_in
    async def read_again(self, actor: Actor) -> None:
        """Read the webhook and its deliveries."""
        page = await open_tab(self, "developers")
        if page is not None and self._shown_for == page.server_id:
            await self._read(actor, page)

    async def _read(self, actor: Actor, page: ServerPageState) -> None:
        async with transaction() as db:
            found = await webhooks.find(db, gateways(), actor, page.server_id)
        self._open(page.server_id, found)

    @signed_in
    async def edit(self, actor: Actor) -> None:
        """Show the form with the webhook as it is now: another admin may have changed it since it was shown."""
        await self._read(actor, await page_of(self, self._shown_for))
        self._close()
        chosen = self._chosen or [one for one in EVENTS if one != "wallet.proved"]
        self.typed, self.choices = self.url, _choices(chosen)
        self.editing = True

    @public
    def close_form(self) -> None:
        """Hide the form."""
        self._close()

    @public
    def hide(self) -> None:
        """Hide the secret; nobody can read it again."""
        self.secret = ""

    @public
    def set_typed(self, value: str) -> None:
        """Set the typed address."""
        self.typed = value[:LONGEST_TYPED]

    @public
    def choose(self, key: str, chosen: bool) -> None:
        """Choose an event, or leave it out."""
        self.choices = _choices([one.key for one in self.choices if (chosen if one.key == key else one.chosen)])

    @writes
    async def save(self, actor: Actor):
        """Set the webhook; its secret is shown only once, the first time."""
        if not self.editing:
            return  # The second click of a double click: the form is closed.
        self.saving = True
        self._clear_fault()
        yield
        try:
            page = await page_of(self, self._shown_for)
            chosen = [one.key for one in self.choices if one.chosen]
            async with transaction() as db:
                made = await webhooks.put(db, gateways(), actor, page.server_id, self.typed, chosen)
            self._close()
            self.secret = made.secret or self.secret
            self._open(page.server_id, made.view)
            await say(self, _("Webhook saved"), _("Events are posted there from now on."))
        except HoldfastError as fault:
            await self._show_fault(_("Webhook not saved"), fault)
        finally:
            self.saving = False

    @writes
    async def send_test(self, actor: Actor):
        """Queue a test event."""
        self.working = True
        yield
        try:
            page = await page_of(self, self._shown_for)
            await rate_limits.spend(rate_limits.RECHECKS, actor.user_id)
            async with transaction() as db:
                await webhooks.send_test(db, gateways(), actor, page.server_id)
            await say(self, _("Test event queued"), _("It is sent within seconds. Refresh the list to see the result."))
            await after_change(self._read(actor, page))
        except HoldfastError as fault:
            await self._show_fault(_("No test event sent"), fault)
        finally:
            self.working = False

    @public
    def ask(self, what: str) -> None:
        """Open the dialog before the webhook is deleted, or gets another secret."""
        self.asked = what if self.is_set and what in {DELETE, NEW_SECRET} else ""

    @writes
    async def confirm(self, actor: Actor):
        """Carry out what the dialog asks about."""
        what, self.asked = self.asked, ""
        if not what:
            return
        self.working = True
        yield
        try:
            page = await page_of(self, self._shown_for)
            async with transaction() as db:
                if what == DELETE:
                    await webhooks.remove(db, gateways(), actor, page.server_id)
                    self.secret = ""
                else:
                    # Read it again: another admin may have changed it since it was shown.
                    stored = await webhooks.view(db, gateways(), actor, page.server_id)
                    made = await webhooks.put(
                        db, gateways(), actor, page.server_id, stored.url, stored.events, new_secret=True
                    )
                    self.secret = made.secret or ""
            if what == DELETE:
                await say(self, _("Webhook deleted"), _("Nothing is posted any more."))
            await after_change(self._read(actor, page))
        except WebhookNotFound as fault:
            await refuse(self, fault.message)
            await self._read(actor, await self.get_state(ServerPageState))
        finally:
            self.working = False


def _titles() -> Mapping[str, tuple[str, str]]:
    return {
        "role.given": (_("Role given"), _("We gave a member a role.")),
        "role.taken": (_("Role taken"), _("We took a role from a member.")),
        "wallet.proved": (
            _("Wallet verified"), _("Only for members who share their wallets with you, and shortened."),
        ),
        "rule.changed": (_("Rule changed"), _("A rule was created, changed, paused, resumed or deleted.")),
        "breaker.tripped": (_("Removals held back"), _("The breaker waits for your decision.")),
        TEST: (_("Test event"), ""),
    }  # fmt: skip


def _choices(chosen: Sequence[str]) -> list[SwitchView]:
    return [SwitchView(one, *_titles()[one], chosen=one in chosen) for one in EVENTS]


def _status(found: WebhookView) -> str:
    if not found.waiting:
        return _("Nothing waits to be delivered.")
    if found.waiting >= MOST_COUNTED:
        return _("Thousands of events wait to be delivered.")
    said = ngettext("{count} event waits to be delivered.", "{count} events wait to be delivered.", found.waiting)
    return said.format(count=found.waiting)


def _trouble(found: WebhookView) -> str:
    if found.failing_since is not None:
        return _("Deliveries have failed since {time}. Each is tried for a day.").format(
            time=day_and_time(found.failing_since)
        )
    if found.gave_up_at is not None:
        return _("Deliveries were given up, last on {time}.").format(time=day_and_time(found.gave_up_at))
    return ""


def _overlap(found: WebhookView) -> str:
    if found.former_secret_until is None:
        return ""
    return _("Until {time} deliveries are signed with the former secret as well.").format(
        time=day_and_time(found.former_secret_until)
    )


def _row(one: DeliveryView) -> DeliveryRowView:
    looks = {
        "delivered": ("good", _("Delivered")), "failed": ("bad", _("Given up")),
        "dropped": ("off", _("Not sent: it may no longer be shared")),
    }  # fmt: skip
    waits = ("warning", _("Waits for another attempt")) if one.attempts else ("unknown", _("Waits"))
    tone, state = looks.get(one.state, waits)
    title = _titles().get(one.event, (one.event, ""))[0]
    return DeliveryRowView(one.id, title, tone, state, ago(one.created_at), _detail(one))


def _detail(one: DeliveryView) -> str:
    if not one.attempts or (one.attempts == 1 and not one.fault):
        return ""
    said = ngettext("{count} attempt", "{count} attempts", one.attempts).format(count=one.attempts)
    parts = [said, *([one.fault] if one.fault and one.state != "delivered" else [])]
    if one.next_at is not None:
        parts.append(_("next on {time}").format(time=day_and_minute(one.next_at)))
    return " · ".join(parts)
