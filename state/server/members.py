"""The Members tab of a server: its members, their roles, and why each has or lacks them."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass

import reflex as rx

from gateways import gateways
from locales import _, ngettext
from models import transaction
from services.core.actors import Actor
from services.core.discord_text import DEFAULT_COLOR
from services.core.errors import MemberNotFound, ProviderUnavailable
from services.roles import rival_reports
from services.runtime import rate_limits
from services.servers import explain, member_list, protection
from services.servers.explain import RoleWhy, RuleWhy
from services.servers.member_list import MemberRoleView, MemberRow
from services.triggers import rechecks, sweep
from settings import settings
from state.core.errors import UNREADABLE, sentence_of
from state.core.evidence import RequirementLineView, line_of
from state.core.gate import signed_in, writes
from state.core.retry import ask
from state.core.session import SessionState
from state.core.toasts import say
from state.dashboard.server_page import ServerPageState, ServerTab, open_tab

_log = logging.getLogger(__name__)

EVERYBODY = "everybody"
"""The value for a recheck of all members."""


@dataclass(frozen=True)
class MemberRowView:
    """A member in the list."""

    id: str
    name: str
    avatar_url: str
    wallets: str
    roles: list[MemberRoleView]
    """Only those that the member has."""


@dataclass(frozen=True)
class RuleWhyView:
    """A rule's answer; `inactive` says why it does not count at present, or is empty."""

    name: str
    outcome: str
    inactive: str
    lines: list[RequirementLineView]


@dataclass(frozen=True)
class RoleWhyView:
    """One role: whether the member has it and from whom, each rule's answer, and what happens next."""

    id: str
    name: str
    color: str
    status: str
    held: bool
    then: str
    alone: bool
    """Whether rules leave it alone, so that a button lets them decide again."""
    rules: list[RuleWhyView]


class MembersState(ServerTab, rx.State):
    """One page of the search's results, the open member, and a running recheck."""

    rows: list[MemberRowView] = []
    query: str = ""
    search_key: int = 0
    """Changes when we fill in the search, so that the input is created again."""
    page: int = 1
    pages: int = 1
    total: int = 0
    opened: str = ""
    why: list[RoleWhyView] = []
    why_protected: bool = False
    """Whether the open member is protected."""
    why_of: str = ""
    """The member whose reasons are loaded; the reasons of any other open member are still loading."""
    why_fault: str = ""
    """Why the reasons could not be read; otherwise empty."""
    checking: str = ""
    left: int = 0
    asked: int = 0
    _settled: bool = False
    _visit: int = -1
    _colors: dict[str, str] = {}

    @signed_in
    async def load(self, actor: Actor):
        """Read the members if their tab is open; `member` in the URL names one to open."""
        page = await open_tab(self, "members")
        if page is None:
            return
        named = self.router.url.query_parameters.get("member", "")[:32]
        visit = (await self.get_state(SessionState)).visit
        # After a mere reconnect, the search and the open member are those that the person has chosen since.
        if self.shown_for != page.server_id or (named and visit != self._visit):
            self.page, self.opened, self.checking = 1, named, ""
            # A new input loses text that somebody types at the same time, so it is created only if the text differs.
            if self.query != named:
                self.query, self.search_key = named, self.search_key + 1
        self._visit = visit
        if await self._read(actor, page):
            self.shown_for = page.server_id
            yield
            await self._read_why(actor, page)

    async def _read(self, actor: Actor, page: ServerPageState) -> bool:
        """Read the page of the list; return False after a failure, or if the person no longer runs the server."""
        found = await self._tried(
            page, lambda db: member_list.list_members(db, gateways(), actor, page.server_id, self.query, page=self.page)
        )
        if found is None:
            return False
        self.rows = [_row(member) for member in found.members]
        self._colors = {role.role_id: role.role_color for member in found.members[:1] for role in member.roles}
        self.total, self.pages = found.total, max(1, -(-found.total // found.page_size))
        if self.page > self.pages:
            # The members of this page are gone since it was shown.
            self.page = self.pages
            return await self._read(actor, page)
        return True

    async def _read_why(self, actor: Actor, page: ServerPageState) -> None:
        if not self.opened:
            return

        self.why_fault = ""
        try:
            found = await ask(lambda db: explain.why(db, gateways(), actor, page.server_id, self.opened))
        except MemberNotFound:
            self.opened, self.why_of, self.why = "", "", []
            return
        except UNREADABLE as fault:
            self.why_fault = sentence_of(fault)
            return
        self.why = [_role(role, self._colors) for role in found.roles]
        self.why_of, self.why_protected = self.opened, found.protected

    @signed_in
    async def search(self, actor: Actor, value: str) -> None:
        """Search after a pause in typing: part of a name, or a whole id. An open member in the results stays open."""
        self.query, self.page = value.strip()[: member_list.LONGEST_QUERY], 1
        await self._again(actor)
        if all(row.id != self.opened for row in self.rows):
            self.opened = ""

    @signed_in
    async def turn(self, actor: Actor, by: int) -> None:
        """Turn to the next page or back."""
        shown, self.page = self.page, min(max(1, self.page + by), self.pages)
        try:
            await self._again(actor)
        except UNREADABLE:
            self.page = shown  # whose rows are still there
            raise
        self.opened = ""

    async def _again(self, actor: Actor) -> None:
        page = await open_tab(self, "members")
        if page is not None:
            await self._read(actor, page)

    @signed_in
    async def toggle(self, actor: Actor, member: str):
        """Open a member, or close the open one."""
        self.opened = "" if self.opened == member else member[:32]
        self.why_of = ""
        yield
        page = await open_tab(self, "members")
        if page is not None:
            await self._read_why(actor, page)

    @signed_in
    async def why_again(self, actor: Actor) -> None:
        """Read the open member's reasons again after a failure."""
        page = await open_tab(self, "members")
        if page is not None:
            await self._read_why(actor, page)

    @writes
    async def check_everybody(self, actor: Actor) -> None:
        """Recheck all members of the server."""
        page = await self._page()
        await rate_limits.spend(rate_limits.RECHECKS, actor.user_id)
        async with transaction() as db:
            count = await sweep.recheck_server(db, gateways(), actor, page.server_id)
        if count is None:
            # Somebody else asked at the same moment. Nobody knows yet how many are queued.
            count = max(1, self.total)
        if count:
            self._follow_all(count)
        else:
            await say(
                self,
                _("Nobody to check"),
                _("Nobody here has a wallet that counts or a role from {product} yet.").format(
                    product=settings().product_name
                ),
            )

    def _follow_all(self, count: int) -> None:
        """Show how many of these members are still to be checked, and read the list again when none is."""
        self.checking, self.left, self.asked, self._settled = EVERYBODY, count, count, False

    @writes
    async def check(self, actor: Actor, member: str) -> None:
        """Recheck one member."""
        page = await self._page()
        await rate_limits.spend(rate_limits.RECHECKS, actor.user_id)
        async with transaction() as db:
            await rechecks.of_member(db, gateways(), actor, page.server_id, member)
        self.checking, self.left, self.asked, self._settled = member[:32], 1, 1, False

    @writes
    async def protect(self, actor: Actor, member: str, protected: bool) -> None:
        """Protect a member from losing roles, or end the protection."""
        page = await self._page()
        async with transaction() as db:
            await protection.of_member(db, gateways(), actor, page.server_id, member, protected)
        await self._read_why(actor, page)
        if protected:
            await say(self, _("Protected"), _("Nothing is taken from this member until you end it."))
        else:
            await say(self, _("No longer protected"), _("This member keeps and loses roles by the rules again."))

    @writes
    async def follow_again(self, actor: Actor, member: str, role_id: str) -> None:
        """Let the rules decide again about a role of a member that is left alone; another member may be open by now."""
        page = await self._page()
        async with transaction() as db:
            await rival_reports.follow_again(db, gateways(), actor, page.server_id, role_id[:32], member[:32])
        await self._read_why(actor, page)
        await say(self, _("The rules decide again"), _("The member is checked now."))

    @signed_in
    async def follow(self, actor: Actor) -> None:
        """Show how many members still wait for the recheck, and read everything again when none does.

        A role is written only after its decision, so this reads until the roles are written, at least once more.
        """
        page = await open_tab(self, "members")
        if page is None or not self.checking or self.shown_for != page.server_id:
            return
        who = None if self.checking == EVERYBODY else self.checking
        async with transaction() as db:
            self.left = min(await rechecks.waiting(db, page.server_id, who), self.asked)
            unwritten = 0 if self.left else await rechecks.unwritten(db, page.server_id, who)
        if self.left:
            return
        try:
            await self._read(actor, page)
        except ProviderUnavailable as fault:
            _log.info("members not read again server=%s reason=%s", page.server_id, fault.message)
            return
        await self._read_why(actor, page)
        if self._settled and not unwritten:
            self.checking = ""
            await say(self, _("Checked again"), _("What you see is what was found just now."))
        self._settled = True


def _row(member: MemberRow) -> MemberRowView:
    roles = [role for role in member.roles if role.held]
    count = member.wallet_count
    wallets = (
        ngettext("{count} wallet", "{count} wallets", count).format(count=count)
        if count
        else _("No wallet counts here")
    )
    shown = f": {', '.join(member.wallets)}" if member.wallets else ""
    return MemberRowView(member.discord_id, member.name, member.avatar_url or "", f"{wallets}{shown}", roles)


def _role(role: RoleWhy, colors: Mapping[str, str]) -> RoleWhyView:
    if role.held:
        ours = _("Has it, from {product}").format(product=settings().product_name)
        status = ours if role.granted_by_us else _("Has it, from somebody else")
    else:
        status = _("Does not have it")
    return RoleWhyView(
        id=role.role_id,
        name=role.role_name,
        color=colors.get(role.role_id, DEFAULT_COLOR),
        status=status,
        held=role.held,
        then=role.next,
        alone=role.left_alone_until is not None,
        rules=[_rule(rule) for rule in role.rules],
    )


def _rule(rule: RuleWhy) -> RuleWhyView:
    inactive = {"paused": _("Paused: it neither gives nor takes."), "shadow": _("In shadow: it only watches.")}
    return RuleWhyView(
        rule.name, rule.outcome, inactive.get(rule.state, ""), [line_of(one) for one in rule.requirements]
    )
