"""The Health tab: a server's health in lines, read again every few seconds while it is open."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

import reflex as rx

from gateways import gateways
from locales import N_, _, day_and_minute, ngettext
from models import transaction
from services.core.actors import Actor
from services.core.chain_names import chain_title
from services.health import server_health
from services.health.views import BAD, OFF, HealthView, LagHealth, ProviderHealth, UnknownReading
from services.roles import rival_reports
from services.triggers.chain_cursor import COINS, WALLETS
from state.core.gate import writes
from state.core.toasts import say
from state.dashboard.server_page import ServerPageState, ServerTab, after_change

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
    _tab: ClassVar[str] = "health"

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
        self.providers += [_line(f"quota:{one.provider}:{one.reads}", one.name, one) for one in view.quotas]
        self.others = [_provider(one) for one in view.providers if not one.used]


def _line(
    key: str,
    title: str,
    of: Any,
    since: datetime | None = None,
    *,
    state: str | None = None,
    text: str | None = None,
    role: str = "",
) -> HealthLineView:
    """Return the line about a part of the health, with its own state and text unless others are given."""
    shown: str = of.state if state is None else state
    told = ""
    if since is not None and shown in {"warning", "bad"}:
        told = _("since {time}").format(time=day_and_minute(since))
    return HealthLineView(key, shown, title, of.text if text is None else text, of.mend or "", told, role)


def _here(view: HealthView) -> list[HealthLineView]:
    """Return the lines about the server: the bot, its permissions, the roles, paused rules, held-back removals."""
    bot, order = view.bot, view.role_order
    return [
        _line("bot", _("Bot"), bot, bot.since),
        _line("permissions", _("Permissions"), view.permissions),
        *(
            _line(f"role:{one.role_id}", _("Role {role}").format(role=one.role_name), one, state=order.state)
            for one in order.problems
        ),
        *([] if order.problems else [_line("roles", _("Roles"), order)]),
        *(
            _line(f"rule:{one.id}", _("Rule “{rule}” is paused").format(rule=one.name), one, one.since, text=one.reason)
            for one in view.paused_rules
        ),
        *(
            _line(f"breaker:{one.role_id}", _("Removals of {role} stopped").format(role=one.role_name), one, one.since)
            for one in view.breakers
        ),
        *(
            _line(
                f"truce:{one.role_id}", _("Role {role} left alone").format(role=one.role_name), one, one.since,
                role=one.role_id,
            )
            for one in view.truces
        ),
        *(
            _line(
                f"rival:{one.role_id}:{one.actor_id}:{at}",
                _("{name} moves {role}").format(name=one.name or _("Somebody"), role=one.role_name), one, one.first_at,
            )
            for at, one in enumerate(view.rivals)
        ),
        _line("alerts", _("Alerts"), view.alerts),
    ]  # fmt: skip


def _work(view: HealthView) -> list[HealthLineView]:
    """Return the lines about background work: the sweep, the queue, failed reads, and the followers by chain."""
    sweep = view.last_sweep
    return [
        _line("sweep", _("Daily sweep"), sweep, text=f"{sweep.text}{_next(sweep.next_at)}"),
        _line("queue", _("Queue"), view.queue),
        *(_line(f"unknown:{at}", _waits(one), one) for at, one in enumerate(view.unknown)),
        *(_line(f"lag:{place}", _distance(one), one) for place, one in enumerate(view.lag)),
    ]


def _waits(one: UnknownReading) -> str:
    return ngettext("{count} member waits", "{count} members wait", one.members).format(count=one.members)


def _distance(one: LagHealth) -> str:
    """Return a follower's title: its chain, what it follows there besides contracts, and how far it is behind."""
    place = _(_FOLLOWED.get(one.kind, "{chain}")).format(chain=chain_title(one.chain))
    if one.state == OFF:
        return _("{chain}: not followed").format(chain=place)
    if one.state == BAD:
        return _("{chain}: cannot be read").format(chain=place)
    if not one.behind:
        return _("{chain}: up to date").format(chain=place)
    said = ngettext("{chain}: {count} block behind", "{chain}: {count} blocks behind", one.behind)
    return said.format(chain=place, count=one.behind)


def _next(moment: datetime | None) -> str:
    return "" if moment is None else " " + _("Next: {time}.").format(time=day_and_minute(moment))


def _provider(one: ProviderHealth) -> HealthLineView:
    reason = f" ({one.reason})" if one.reason and one.state in {"warning", "bad"} else ""
    return _line(one.provider, one.name, one, one.since, text=f"{one.text}{reason}")
