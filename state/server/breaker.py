"""Removals that the breaker holds back, in a banner above a server's tabs, with an admin's decision."""

import logging
from dataclasses import dataclass
from datetime import datetime

import reflex as rx

from gateways import gateways
from locales import _, ngettext
from models import transaction
from services.core.actors import Actor
from services.core.errors import NotFound, ProviderUnavailable
from services.core.relative_times import ago
from services.servers import breaker_review
from services.servers.breaker_review import HeldBackView, Loser, Trip
from services.triggers import rechecks
from state.core.dialog import Dialog
from state.core.gate import public, signed_in, writes
from state.core.retry import ask
from state.core.toasts import say
from state.dashboard.server_page import ServerPageState, after_change, open_tab, page_of
from state.server.members import MembersState

_log = logging.getLogger(__name__)

SHOWN_ON = ("rules", "members", "health")
"""The tabs with the banner."""


@dataclass(frozen=True)
class HeldBackRoleView:
    """A role with held-back removals of `total` members; `more` names the number not listed, or is empty."""

    id: str
    name: str
    headline: str
    since: str
    cause: str
    total: int
    tripped_at: datetime
    losers: list[Loser]
    more: str


class HeldBackState(Dialog, rx.State):
    """The removals that wait for an admin of the server, and the dialog before the decision."""

    shown_for: int = 0
    roles: list[HeldBackRoleView] = []
    asked_name: str = ""
    asked_approve: bool = False
    asked_text: str = ""
    deciding: str = ""

    @signed_in
    async def load(self, actor: Actor) -> None:
        """Read the removals that wait, if a tab with the banner is open."""
        self.asked = ""
        if (page := await open_tab(self, *SHOWN_ON)) is not None:
            await self._read(actor, page)

    @signed_in
    async def look(self, actor: Actor) -> None:
        """Read them again if they concern other roles or members than those shown, unless the dialog is open."""
        page = await open_tab(self, *SHOWN_ON)
        if page is None or self.asked or self.deciding:
            return
        async with transaction() as db:
            waiting = await breaker_review.trips(db, page.server_id)
        if waiting != {role.id: _trip(role) for role in self.roles}:
            await self._read(actor, page)

    async def _read(self, actor: Actor, page: ServerPageState) -> None:
        try:
            found = await ask(lambda db: breaker_review.of_server(db, gateways(), actor, page.server_id))
        except NotFound:
            page._lost()
            self.roles = []
        except ProviderUnavailable as fault:
            # The tab below shows the error too. `look` tries again while removals wait.
            _log.info("held-back removals not read server=%s reason=%s", page.server_id, fault.message)
        else:
            self.roles, self.shown_for = [_role(view) for view in found], page.server_id

    @public
    def ask(self, role_id: str, approve: bool) -> None:
        """Open the dialog that explains a decision."""
        role = next((role for role in self.roles if role.id == role_id), None)
        if role is None:
            return
        count = role.total
        self.asked, self.asked_name, self.asked_approve = role.id, role.name, approve
        said = (
            ngettext(
                "{role} is taken from {count} member now, each after one more check of what they hold. The approval "
                "counts for 24 hours, or until a rule for the role is changed.",
                "{role} is taken from {count} members now, each after one more check of what they hold. The approval "
                "counts for 24 hours, or until a rule for the role is changed.",
                count,
            )
            if approve
            else ngettext(
                "{count} member keeps {role} although no rule says yes, until one says yes again. From then on rules "
                "decide as usual.",
                "{count} members keep {role} although no rule says yes, until one says yes again. From then on rules "
                "decide as usual.",
                count,
            )
        )
        self.asked_text = said.format(role=role.name, count=count)

    @writes
    async def decide(self, actor: Actor):
        """Carry out the decision that the dialog is about."""
        role_id, self.asked = self.asked, ""
        if not role_id:
            return
        seen = next((_trip(role) for role in self.roles if role.id == role_id), None)
        if seen is None:
            return
        page = await page_of(self, self.shown_for)
        self.deciding = role_id
        yield
        try:
            async with transaction() as db:
                await breaker_review.decide(
                    db, gateways(), actor, page.server_id, role_id, seen, approve=self.asked_approve
                )
                waiting = await rechecks.waiting(db, page.server_id)
            if waiting and await open_tab(self, "members") is not None:
                # The list below shows who still has the role.
                (await self.get_state(MembersState))._follow_all(waiting)
            if self.asked_approve:
                await say(self, _("Removals approved"), _("{role} is being taken now.").format(role=self.asked_name))
            else:
                said = _("Everybody concerned keeps {role}.").format(role=self.asked_name)
                await say(self, _("Removals dismissed"), said)
        finally:
            self.deciding = ""
            await after_change(self._read(actor, page))


def _trip(role: HeldBackRoleView) -> Trip:
    return Trip(role.tripped_at, role.total)


def _role(view: HeldBackView) -> HeldBackRoleView:
    return HeldBackRoleView(
        id=view.role_id,
        name=view.role_name,
        headline=_("{count} of {holders} holders would lose {role} within a day").format(
            count=view.would_lose, holders=view.holders, role=view.role_name
        ),
        since=_since(view),
        cause=view.cause,
        losers=list(view.losers),
        total=view.total,
        tripped_at=view.tripped_at,
        more=_("and {count} more").format(count=more) if (more := view.total - len(view.losers)) > 0 else "",
    )


def _since(view: HeldBackView) -> str:
    said = _("Held back {ago}. Nothing is taken until you decide.").format(ago=ago(view.tripped_at))
    if view.total == view.would_lose:
        return said
    # The headline counts those who had lost the role earlier that day too; the list and the dialog do not.
    now = ngettext("{count} member would lose it now.", "{count} members would lose it now.", view.total)
    return f"{said} {now.format(count=view.total)}"
