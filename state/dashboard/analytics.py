"""The dashboard's three numbers and its charts."""

from typing import Any

import reflex as rx

from gateways import gateways
from models.db.row_ids import row_id
from services.core.actors import Actor
from services.core.errors import ServerNotFound
from services.servers import analytics, servers
from state.core.errors import UNREADABLE
from state.core.gate import signed_in
from state.core.retry import ask
from state.dashboard.charts import (
    EMPTY_CHART,
    BarChartView,
    DayView,
    RuleChartView,
    days_of,
    proofs_of,
    roles_of,
    rules_of,
)

RANGES = analytics.RANGES
EVERYWHERE = "0"
"""The choice that means all servers."""


class AnalyticsState(rx.State):
    """The numbers of the person's servers, and their history over the chosen days."""

    loaded: bool = False
    failed: bool = False
    busy: bool = False
    total_verifications: int = 0
    active_rules: int = 0
    connected_servers: int = 0
    days: int = 30
    server: str = EVERYWHERE
    proofs: BarChartView = EMPTY_CHART
    roles: BarChartView = EMPTY_CHART
    rules: list[RuleChartView] = []
    more_rules: int = 0
    day_rows: list[DayView] = []
    day_names: list[str] = []

    @signed_in
    async def load(self, actor: Actor) -> None:
        """Read the numbers and the history."""
        await self._read(actor)

    @signed_in
    async def choose_days(self, actor: Actor, days: int):
        """Choose a range of days; ignore a value that is not offered."""
        if days in RANGES:
            async for outcome in self._choose(actor, days, self.server):
                yield outcome

    @signed_in
    async def choose_server(self, actor: Actor, server: str):
        """Choose one server by its internal id, or EVERYWHERE."""
        if row_id(server) is not None:
            async for outcome in self._choose(actor, self.days, server):
                yield outcome

    async def _choose(self, actor: Actor, days: int, server: str):
        """Read the history of these days and this server; after a failure the former choice stays."""
        shown = self.days, self.server
        self.days, self.server, self.busy = days, server, True
        yield
        try:
            await self._read(actor)
        except UNREADABLE:
            self.days, self.server = shown
            raise
        finally:
            self.busy = False

    async def _read(self, actor: Actor) -> None:
        self.failed = not self.loaded

        async def read(db: Any) -> tuple[analytics.AnalyticsView, analytics.HistoryView]:
            await servers.ask_again(db, gateways(), actor)
            one = None if self.server == EVERYWHERE else int(self.server)
            return await analytics.totals(db, actor), await analytics.history(db, actor, self.days, one)

        try:
            totals, history = await ask(read)
        except ServerNotFound:
            # The person no longer runs the chosen server, so show all.
            self.server = EVERYWHERE
            totals, history = await ask(read)
        self.total_verifications = totals.total_verifications
        self.active_rules = totals.active_rules
        self.connected_servers = totals.connected_servers
        self.proofs, self.roles = proofs_of(history), roles_of(history)
        self.rules = rules_of(history)
        self.more_rules = len(history.rules) - len(self.rules)
        self.day_rows = days_of(history)
        self.day_names = [row.day for row in reversed(self.day_rows)]
        self.loaded, self.failed = True, False
