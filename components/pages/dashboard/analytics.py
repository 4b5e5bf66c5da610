"""The dashboard's charts: wallets verified, roles given and taken, and the holders of each rule."""

import reflex as rx

from components.ui.card import card
from components.ui.chart import bar_chart, heading_cell, key, line_chart, table_behind
from components.ui.effects.texts import filled, sentence
from components.ui.field import typed_select
from components.ui.placeholders import once_read, skeleton
from locales import _, ngettext
from state.dashboard.analytics import EVERYWHERE, RANGES, AnalyticsState
from state.dashboard.charts import MOST_RULES, DayView, RuleChartView
from state.dashboard.servers import DashboardState


def analytics() -> rx.Component:
    """Return the charts for the chosen days."""
    return rx.el.section(
        rx.el.div(
            rx.el.h2(_("Analytics"), id="analytics", class_name="text-xl font-semibold sm:text-2xl"),
            rx.el.div(_servers(), _ranges(), class_name="flex flex-wrap items-center gap-3"),
            class_name="mb-4 flex flex-wrap items-center justify-between gap-3",
        ),
        once_read(
            AnalyticsState.loaded,
            AnalyticsState.failed,
            AnalyticsState.load,
            rx.el.div(
                _proofs(),
                _roles(),
                _holders(),
                class_name=rx.cond(AnalyticsState.busy, f"{_GRID} opacity-60", _GRID),
                aria_busy=AnalyticsState.busy,
            ),
            rx.el.div(skeleton("h-64"), skeleton("h-64"), class_name=_GRID),
        ),
        aria_labelledby="analytics",
        class_name="mt-12",
    )


_GRID = "grid grid-cols-1 gap-5 lg:grid-cols-2"


def _servers() -> rx.Component:
    """Return the choice of a server, if there are several."""
    return rx.cond(
        rx.Var.create(DashboardState.cards).to(list).length() > 1,
        rx.el.label(
            rx.el.span(_("Server"), class_name="sr-only"),
            typed_select(
                rx.el.option(_("All servers"), value=EVERYWHERE),
                rx.foreach(
                    DashboardState.cards, lambda server: rx.el.option(server.name, value=server.internal_id.to_string())
                ),
                value=AnalyticsState.server,
                on_change=AnalyticsState.choose_server,
                class_name="select select-sm w-44",
            ),
        ),
    )


def _ranges() -> rx.Component:
    return rx.el.div(
        *[
            rx.el.button(
                ngettext("{count} day", "{count} days", days).format(count=days),
                type="button",
                on_click=AnalyticsState.choose_days(days),
                aria_pressed=AnalyticsState.days == days,
                class_name=rx.cond(
                    AnalyticsState.days == days, "btn btn-sm btn-primary join-item", "btn btn-sm btn-outline join-item"
                ),
            )
            for days in RANGES
        ],
        role="group",
        aria_label=_("How far back"),
        class_name="join flex-wrap",
    )


def _chart(
    title: str, figure: rx.Component, shown: rx.Var[bool] | bool, nothing: str, drawing: rx.Component, *, proofs: bool
) -> rx.Component:
    return card(
        rx.el.h3(title, class_name="text-base font-semibold"),
        figure,
        rx.cond(
            shown,
            rx.el.div(drawing, _time_line(), class_name="mt-4"),
            rx.el.p(nothing, class_name="muted grid h-36 place-items-center text-center text-sm"),
        ),
        rx.cond(shown, _day_table(proofs=proofs)),
    )


def _time_line() -> rx.Component:
    """Return the labels of the first and the last day."""
    return rx.el.div(
        rx.el.span(AnalyticsState.day_names[0]),
        rx.el.span(_("Today")),
        class_name="muted mt-1.5 flex justify-between text-xs",
        aria_hidden="true",
    )


def _proofs() -> rx.Component:
    chart = AnalyticsState.proofs
    return _chart(
        _("Wallets verified"),
        rx.cond(
            chart.total > 0,
            rx.el.p(
                sentence(
                    _("{total} in the last {days} days, by present members. The most on one day: {peak}."),
                    total=rx.el.strong(chart.total, class_name="tabular-nums text-base-content"),
                    days=AnalyticsState.days, peak=chart.peak,
                ),
                class_name="muted mt-1 text-sm",
            ),
        ),
        chart.total > 0,
        _("No wallet was verified in these days."),
        bar_chart(chart),
        proofs=True,
    )  # fmt: skip


def _roles() -> rx.Component:
    chart = AnalyticsState.roles
    return _chart(
        _("Roles given and taken"),
        rx.cond(
            chart.peak > 0,
            rx.el.p(
                key("me-1"),
                sentence(
                    _("{total} given (up)"),
                    total=rx.el.strong(chart.total, class_name="tabular-nums text-base-content"),
                ),
                key("ms-4 me-1", hatched=True),
                sentence(
                    _("{total} taken (down)"),
                    total=rx.el.strong(chart.down_total, class_name="tabular-nums text-base-content"),
                ),
                class_name="muted mt-1 flex flex-wrap items-center gap-x-1 text-sm",
            ),
        ),
        chart.peak > 0,
        _("No role was given or taken in these days."),
        bar_chart(chart, both_ways=True),
        proofs=False,
    )  # fmt: skip


def _day_table(*, proofs: bool) -> rx.Component:
    columns = (_("Wallets verified"),) if proofs else (_("Roles given"), _("Roles taken"))

    def row(day: rx.vars.ObjectVar[DayView]) -> rx.Component:
        numbers = (day.proofs,) if proofs else (day.given, day.taken)
        cells = [rx.el.td(number, class_name="text-end tabular-nums") for number in numbers]
        return rx.el.tr(heading_cell(day.day, "row", "whitespace-nowrap"), *cells)

    return table_behind(
        _("Show as a table"),
        heading_cell(_("Day (UTC)"), "col"),
        *[heading_cell(column, "col", "text-end") for column in columns],
        rows=rx.foreach(AnalyticsState.day_rows, row),
        caption=_("Wallets verified per day") if proofs else _("Roles given and taken per day"),
    )


def _holders() -> rx.Component:
    return card(
        rx.el.h3(_("Holders of each rule"), class_name="text-base font-semibold"),
        rx.el.p(
            _("Members who have the role through the rule, at the end of each day."), class_name="muted mt-1 text-sm"
        ),
        rx.cond(
            AnalyticsState.rules,
            rx.fragment(
                rx.el.ul(
                    rx.foreach(AnalyticsState.rules, _rule),
                    class_name="mt-4 grid grid-cols-1 gap-x-8 gap-y-5 md:grid-cols-2",
                ),
                rx.cond(
                    AnalyticsState.more_rules > 0,
                    rx.el.p(
                        filled(
                            _("The {count} rules with the most holders are shown; {more} others are not."),
                            count=MOST_RULES,
                            more=AnalyticsState.more_rules,
                        ),
                        class_name="muted mt-4 text-sm",
                    ),
                ),
                _holder_table(),
            ),
            rx.el.p(_("There are no rules yet."), class_name="muted py-8 text-center text-sm"),
        ),
        class_name="lg:col-span-2",
    )  # fmt: skip


def _rule(rule: rx.vars.ObjectVar[RuleChartView]) -> rx.Component:
    return rx.el.li(
        rx.el.div(
            rx.el.div(
                rx.el.p(rule.name, dir="auto", class_name="cut-name text-sm font-medium"),
                rx.el.p(rule.server_name, dir="auto", class_name="muted cut-name text-xs"),
                class_name="min-w-0",
            ),
            rx.el.p(
                rx.el.strong(rule.now, class_name="text-lg tabular-nums"),
                rx.el.span(rule.change, class_name="muted ms-2 text-xs tabular-nums"),
                class_name="whitespace-nowrap",
            ),
            class_name="mb-1 flex items-end justify-between gap-3",
        ),
        line_chart(rule),
        key=rule.id.to_string(),
        class_name="min-w-0",
    )


def _holder_table() -> rx.Component:
    def row(rule: rx.vars.ObjectVar[RuleChartView]) -> rx.Component:
        return rx.el.tr(
            heading_cell(rule.name, "row", "min-w-40"),
            rx.foreach(rule.holders, lambda count: rx.el.td(count, class_name="text-end tabular-nums")),
        )

    return table_behind(
        _("Show as a table"),
        heading_cell(_("Rule"), "col"),
        rx.foreach(AnalyticsState.day_names, lambda day: heading_cell(day, "col", "whitespace-nowrap text-end")),
        rows=rx.foreach(AnalyticsState.rules, row),
        caption=_("Holders of each rule at the end of each day"),
    )
