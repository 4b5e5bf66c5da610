"""The Activity tab of a server: the audit log with filters, a download and undo."""

import reflex as rx

from components.pages.server.tab_outlines import list_outline, once_loaded
from components.ui.button import button, link_button, page_buttons
from components.ui.card import card
from components.ui.dialog import confirm
from components.ui.effects.texts import about, filled
from components.ui.field import field, select_field
from components.ui.placeholders import empty
from locales import _
from state.core.timing import SEARCH_DEBOUNCE_MILLISECONDS
from state.dashboard.server_page import ServerPageState
from state.server.activity import ACTORS, KINDS, MARKS, PERIODS, ActivityState, EventRowView, OptionView

_COLORS = {
    "good": "text-success", "bad": "text-error", "warning": "text-warning", "info": "text-info", "quiet": "muted",
}  # fmt: skip


def activity_tab() -> rx.Component:
    """Return the filters, the lines, and the dialog before an undo."""
    return rx.el.div(
        _filters(),
        once_loaded(
            ActivityState, ActivityState.load, rx.cond(ActivityState.rows, _list(), _nothing()), list_outline(8, "h-14")
        ),
        confirm(
            is_open=ActivityState.asked != "",
            on_open_change=ActivityState.close_dialog,
            title=_("Undo this?"),
            text=ActivityState.asked_text,
            cancel=button(_("Leave it"), kind="quiet", on_click=ActivityState.close_dialog(False)),
            action=button(_("Undo"), kind="primary", icon="undo-2", on_click=ActivityState.undo),
        ),
    )


def _filters() -> rx.Component:
    return rx.el.div(
        rx.el.div(
            rx.el.div(
                field(
                    _("Member"),
                    rx.el.input(
                        id="activity-member",
                        type="search",
                        key=ActivityState.member_key,
                        default_value=ActivityState.member,
                        placeholder=_("Name or Discord ID"),
                        auto_complete="off",
                        spell_check=False,
                        class_name="input",
                        on_change=ActivityState.enter_member.debounce(SEARCH_DEBOUNCE_MILLISECONDS),
                    ),
                ),
                class_name="col-span-full lg:col-span-1",
            ),
            _choice(_("What"), "activity-kind", ActivityState.kind, ActivityState.choose_kind, _("Everything"), KINDS),
            select_field(
                _("Role or rule"),
                "activity-subject",
                rx.el.option(_("Any"), value=""),
                rx.el.optgroup(rx.foreach(ActivityState.roles, _option), label=_("Roles")),
                rx.el.optgroup(rx.foreach(ActivityState.rules, _option), label=_("Rules")),
                value=ActivityState.subject,
                on_change=ActivityState.choose_subject,
            ),
            select_field(
                _("Done by"),
                "activity-actor",
                rx.el.option(_("Anybody"), value=""),
                *[rx.el.option(one.label, value=one.value) for one in ACTORS],
                rx.foreach(ActivityState.actors, _option),
                value=ActivityState.done_by,
                on_change=ActivityState.choose_actor,
            ),
            _choice(_("When"), "activity-days", ActivityState.days, ActivityState.choose_days, _("Any time"), PERIODS),
            class_name="grid grid-cols-1 gap-3 min-[22rem]:grid-cols-2 lg:grid-cols-5",
        ),
        rx.el.div(
            rx.cond(
                _filtered(),
                button(_("Clear filters"), kind="quiet", icon="x", class_name="btn-sm", on_click=ActivityState.clear),
            ),
            link_button(
                _("Download CSV"),
                ActivityState.csv_url,
                kind="quiet",
                icon="download",
                leaves_app=True,
                class_name="btn-sm",
                download=True,
            ),
            class_name="mt-3 flex flex-wrap justify-end gap-2",
        ),
        class_name="mb-4",
        role="search",
        aria_label=_("Filter the activity"),
    )


def _filtered() -> bool:
    """Return whether any filter is set, as an expression for the browser."""
    return (
        (ActivityState.kind != "")
        | (ActivityState.member != "")
        | (ActivityState.subject != "")
        | (ActivityState.done_by != "")
        | (ActivityState.days != "")
    )


def _choice(
    label: str,
    name: str,
    value: rx.Var[str] | str,
    on_change: rx.event.EventType[str],
    everything: str,
    options: tuple[tuple[str, str], ...],
) -> rx.Component:
    return select_field(
        label,
        name,
        rx.el.option(everything, value=""),
        *[rx.el.option(_(text), value=key) for key, text in options],
        value=value,
        on_change=on_change,
    )


def _option(option: rx.vars.ObjectVar[OptionView]) -> rx.Component:
    return rx.el.option(option.label, value=option.value, key=option.value)


def _nothing() -> rx.Component:
    return card(
        rx.cond(
            _filtered(),
            empty(
                "search-x",
                _("Nothing found"),
                _("No events match these filters."),
                button(_("Clear filters"), icon="x", on_click=ActivityState.clear),
            ),
            empty("history", _("Nothing has happened yet"), _("Changes to rules, members and settings appear here.")),
        )
    )


def _list() -> rx.Component:
    return rx.el.div(
        rx.el.ul(rx.foreach(ActivityState.rows, _event), class_name="surface divide-y divide-base-300"),
        rx.cond(
            (ActivityState.page == 1) & ActivityState.is_last,
            rx.fragment(),
            rx.el.nav(
                rx.el.p(filled(_("Page {page}"), page=ActivityState.page), class_name="muted text-sm", role="status"),
                page_buttons(
                    _("Newer"),
                    _("Older"),
                    ActivityState.turn,
                    first=ActivityState.page <= 1,
                    last=ActivityState.is_last,
                ),
                class_name="mt-4 flex flex-wrap items-center justify-between gap-3",
                aria_label=_("Pages of the activity"),
            ),
        ),
    )


def _event(event: rx.vars.ObjectVar[EventRowView]) -> rx.Component:
    return rx.el.li(
        rx.el.span(_mark(event.kind), class_name="mt-0.5 shrink-0"),
        rx.el.div(
            rx.el.p(event.text, class_name="break-words"),
            rx.cond(event.more, _more(event)),
            rx.el.div(
                rx.el.time(event.age, title=event.time, class_name="muted py-1 pe-2 text-sm"),
                rx.cond(
                    event.member != "",
                    link_button(
                        _("Why?"),
                        f"{ServerPageState.config_url}&tab=members&member={event.member}",
                        kind="quiet",
                        class_name="btn-sm px-2",
                        title=_("Why this member has or lacks each role"),
                        aria_label=about(_("Why?"), event.text),
                    ),
                ),
                rx.cond(
                    event.batch != "",
                    button(
                        _("Undo"),
                        kind="quiet",
                        icon="undo-2",
                        class_name="btn-sm px-2",
                        busy=ActivityState.undoing == event.batch,
                        on_click=ActivityState.ask_undo(event.batch),
                        aria_label=about(_("Undo"), event.text),
                    ),
                ),
                class_name="-mb-1 flex flex-wrap items-center",
            ),
            class_name="min-w-0 flex-1",
        ),
        key=event.id,
        class_name="flex items-start gap-3 px-4 py-3",
    )


def _more(event: rx.vars.ObjectVar[EventRowView]) -> rx.Component:
    """Return the other lines of the same batch."""
    return rx.el.details(
        rx.el.summary(
            filled(_("and {count} more like this"), count=event.more.length()),
            class_name="muted w-fit cursor-pointer rounded-field text-sm font-medium underline underline-offset-2",
        ),
        rx.el.ul(
            rx.foreach(event.more, lambda text: rx.el.li(text, class_name="break-words")),
            class_name="mt-1 grid grid-cols-1 gap-1 text-sm",
        ),
    )


def _mark(kind: rx.Var[str]) -> rx.Component | rx.Var[rx.Component]:
    """Return the event's icon; the sentence beside it carries the meaning."""
    return rx.match(
        kind,
        *((key, rx.icon(icon, size=18, class_name=_COLORS[tone], aria_hidden="true")) for key, icon, tone in MARKS),
        rx.icon("circle-dot", size=18, class_name="muted", aria_hidden="true"),
    )
