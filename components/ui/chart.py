"""Charts drawn as SVG from the coordinates and sentences of `state/dashboard/charts.py`, each with its table."""

from typing import Any

import reflex as rx

from state.dashboard.charts import HEIGHT, WIDTH, BarChartView, BarView, RuleChartView


def bar_chart(chart: rx.vars.ObjectVar[BarChartView] | BarChartView, *, both_ways: bool = False) -> rx.Component:
    """Return upward bars; `both_ways` adds hatched bars downward from the middle."""
    return drawing(
        "h-36",
        chart.summary,
        base_line(HEIGHT // 2 if both_ways else HEIGHT),
        rx.foreach(chart.up, lambda one: bar(one, "fill-primary")),
        rx.foreach(chart.down, lambda one: bar(one, "chart-hatched")) if both_ways else rx.fragment(),
    )


def drawing(height: str, summary: str | rx.Var[str], *shapes: rx.Component) -> rx.Component:
    """Return shapes within WIDTH and HEIGHT, stretched to the page's width; the summary is read aloud."""
    return rx.el.svg(
        *shapes,
        view_box=f"0 0 {WIDTH} {HEIGHT}",
        class_name=f"block {height} w-full",
        custom_attrs={"preserveAspectRatio": "none", "role": "img", "aria-label": summary},
    )


def bar(one: rx.vars.ObjectVar[BarView], class_name: str) -> rx.Component:
    """Return a bar with its label."""
    return rx.el.svg.rect(
        rx.el.svg.title(one.label), x=one.x, y=one.y, width=one.width, height=one.height, class_name=class_name
    )


def key(class_name: str, *, hatched: bool = False) -> rx.Component:
    """Return a series' legend key. The hatched one also defines the pattern of its bars."""
    pattern = rx.el.svg.pattern(
        rx.el.svg.rect(width="6", height="3", class_name="fill-accent"),
        id="chart-hatching",
        width="6",
        height="6",
        custom_attrs={"patternUnits": "userSpaceOnUse", "patternTransform": "rotate(-45)"},
    )
    return rx.el.svg(
        *([rx.el.svg.defs(pattern)] if hatched else []),
        rx.el.svg.rect(width="12", height="12", class_name="chart-hatched" if hatched else "fill-primary"),
        view_box="0 0 12 12",
        class_name=f"size-3 {class_name}",
        aria_hidden="true",
    )


def base_line(y: int = HEIGHT) -> rx.Component:
    """Return the line on which bars stand."""
    return rx.el.svg.line(
        x1=0, x2=WIDTH, y1=y, y2=y, class_name="chart-line",
        custom_attrs={"vectorEffect": "non-scaling-stroke"},
    )  # fmt: skip


def line_chart(rule: rx.vars.ObjectVar[RuleChartView]) -> rx.Component:
    """Return one rule's holders over the days."""
    return drawing(
        "h-14",
        rule.summary,
        rx.el.svg.path(d=rule.area, class_name="chart-area"),
        rx.el.svg.path(
            d=rule.line, class_name="chart-path", custom_attrs={"vectorEffect": "non-scaling-stroke"}, fill="none"
        ),
    )


def table_behind(label: str, *headings: rx.Component, rows: rx.Component, caption: str) -> rx.Component:
    """Return the same numbers as a collapsed table, which scrolls on its own, by keyboard too."""
    return rx.el.details(
        rx.el.summary(label, class_name="cursor-pointer rounded-field text-sm font-medium text-primary"),
        rx.el.div(
            rx.el.table(
                rx.el.caption(caption, class_name="sr-only"),
                rx.el.thead(rx.el.tr(*headings)),
                rx.el.tbody(rows),
                class_name="table table-sm",
            ),
            class_name="mt-3 max-h-72 overflow-auto rounded-field border hairline",
            tab_index=0,
            role="region",
            aria_label=caption,
        ),
        class_name="mt-4",
    )


def heading_cell(text: str | rx.Var[Any], scope: str, class_name: str = "") -> rx.Component:
    """Return the heading cell of a row or a column."""
    return rx.el.th(text, scope=scope, class_name=f"font-semibold {class_name}".strip())
