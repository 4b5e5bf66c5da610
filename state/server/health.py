"""The Health tab: a server's health in lines, read again every few seconds while it is open."""

from dataclasses import dataclass
from datetime import datetime

import reflex as rx

from gateways import gateways
from locales import N_, _, day_of_year, ngettext
from models import transaction
from services.core.actors import Actor
from services.core.chain_names import chain_title
from services.health import server_health
from services.health.views import OFF, HealthView, LagHealth, ProviderHealth, UnknownReading
from services.roles import rival_reports
from services.triggers.chain_cursor import COINS, WALLETS
from state.core.gate import signed_in, writes
from state.core.toasts import say
from state.dashboard.server_page import ServerPageState, ServerTab, after_change, open_tab

HEADLINES = {
    "good": N_("Everything works"),
    "warning": N_("Everything works, with warnings"),
    "bad": N_("There is a problem"),
}
_FOLLOWED = {WALLETS: N_("{chain}, members' wallets"), COINS: N_("{chain}, coins")}
"""Titles of followers that read something other than the contracts of rules."""


@dataclass(frozen=True)
class HealthLineView:
    """One line: `state` is good, warning, bad or off; the advice on how to fix it is empty if nothing is wrong."""

    key: str
    state: str
    title: str
    text: str
    mend: str
    since: str
    role: str = ""
    """The role about which a button lets the rules decide again; otherwise empty."""


class ServerHealthState(ServerTab, rx.State):
    """The Health tab of a server's configuration."""

    state: str = "good"
    headline: str = ""
    checked: str = ""
    here: list[HealthLineView] = []
    work: list[HealthLineView] = []
    providers: list[HealthLineView] = []
    others: list[HealthLineView] = []

    @signed_in
    async def load(self, actor: Actor) -> None:
        """Read the server's health if its tab is open."""
        page = await open_tab(self, "health")
        if page is not None:
            await self._read(actor, page)

    async def _read(self, actor: Actor, page: ServerPageState) -> None:
        view = await self._tried(page, lambda db: server_health.view(db, gateways(), actor, page.server_id))
        if view is not None:
            self._show(view)
            self.shown_for = page.server_id

    @writes
    async def follow_again(self, actor: Actor, role_id: str) -> None:
        """Let the rules decide again about a role that is left alone."""
        page = await self._page()
        async with transaction() as db:
            await rival_reports.follow_again(db, gateways(), actor, page.server_id, role_id[:32])
        await say(self, _("The rules decide again"), _("Everybody concerned is checked now."))
        await after_change(self._read(actor, page))

    def _show(self, view: HealthView) -> None:
        self.state, self.headline = view.state, _(HEADLINES[view.state])
        self.checked = f"{view.checked_at:%H:%M:%S} UTC"
        self.here = _here(view)
        self.work = _work(view)
        self.providers = [_provider(one) for one in view.providers if one.used]
        self.providers += [
            _line(f"quota:{one.provider}:{one.reads}", one.state, one.name, one.text, one.mend) for one in view.quotas
        ]
        self.others = [_provider(one) for one in view.providers if not one.used]


def _line(
    key: str,
    state: str,
    title: str,
    text: str,
    mend: str | None = None,
    since: datetime | None = None,
    *,
    role: str = "",
) -> HealthLineView:
    told = _("since {time}").format(time=_moment(since)) if since is not None and state in {"warning", "bad"} else ""
    return HealthLineView(key, state, title, text, mend or "", told, role)


def _here(view: HealthView) -> list[HealthLineView]:
    """Return the lines about the server: the bot, its permissions, the roles, paused rules, held-back removals."""
    bot, may, order = view.bot, view.permissions, view.role_order
    lines = [
        _line("bot", bot.state, _("Bot"), bot.text, bot.mend, bot.since),
        _line("permissions", may.state, _("Permissions"), may.text, may.mend),
    ]
    lines += [
        _line(f"role:{one.role_id}", order.state, _("Role {role}").format(role=one.role_name), one.text, one.mend)
        for one in order.problems
    ] or [_line("roles", order.state, _("Roles"), order.text)]
    lines += [
        _line(
            f"rule:{one.id}",
            one.state,
            _("Rule “{rule}” is paused").format(rule=one.name),
            one.reason,
            one.mend,
            one.since,
        )
        for one in view.paused_rules
    ]
    lines += [
        _line(
            f"breaker:{one.role_id}",
            one.state,
            _("Removals of {role} stopped").format(role=one.role_name),
            one.text,
            one.mend,
            one.since,
        )
        for one in view.breakers
    ]
    lines += [
        _line(
            f"truce:{one.role_id}",
            one.state,
            _("Role {role} left alone").format(role=one.role_name),
            one.text,
            one.mend,
            one.since,
            role=one.role_id,
        )
        for one in view.truces
    ]
    lines += [
        _line(
            f"rival:{one.role_id}:{one.actor_id}:{at}",
            one.state,
            _("{name} moves {role}").format(name=one.name or _("Somebody"), role=one.role_name),
            one.text,
            one.mend,
            one.first_at,
        )
        for at, one in enumerate(view.rivals)
    ]
    lines.append(_line("alerts", view.alerts.state, _("Alerts"), view.alerts.text, view.alerts.mend))
    return lines


def _work(view: HealthView) -> list[HealthLineView]:
    """Return the lines about background work: the sweep, the queue, failed reads, and the followers by chain."""
    sweep, queue = view.last_sweep, view.queue
    lines = [
        _line("sweep", sweep.state, _("Daily sweep"), f"{sweep.text}{_next(sweep.next_at)}", sweep.mend),
        _line("queue", queue.state, _("Queue"), queue.text, queue.mend),
    ]
    lines += [_line(f"unknown:{at}", one.state, _waits(one), one.text) for at, one in enumerate(view.unknown)]
    lines += [_line(f"lag:{place}", one.state, _distance(one), one.text) for place, one in enumerate(view.lag)]
    return lines


def _waits(one: UnknownReading) -> str:
    return ngettext("{count} member waits", "{count} members wait", one.members).format(count=one.members)


def _distance(one: LagHealth) -> str:
    """Return a follower's title: its chain, what it follows there besides contracts, and how far it is behind."""
    place = _(_FOLLOWED.get(one.kind, "{chain}")).format(chain=chain_title(one.chain))
    if one.state == OFF:
        return _("{chain}: not followed").format(chain=place)
    if not one.behind:
        return _("{chain}: up to date").format(chain=place)
    said = ngettext("{chain}: {count} block behind", "{chain}: {count} blocks behind", one.behind)
    return said.format(chain=place, count=one.behind)


def _next(moment: datetime | None) -> str:
    return "" if moment is None else " " + _("Next: {time}.").format(time=_moment(moment))


def _moment(moment: datetime) -> str:
    return _("{date}, {time} UTC").format(date=day_of_year(moment), time=f"{moment:%H:%M}")


def _provider(one: ProviderHealth) -> HealthLineView:
    reason = f" ({one.reason})" if one.reason and one.state in {"warning", "bad"} else ""
    return _line(one.provider, one.state, one.name, f"{one.text}{reason}", one.mend, one.since)
