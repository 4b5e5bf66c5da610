"""The Move tab: hand roles over from another bot, see who has arrived, and end the move."""

import reflex as rx

from components.pages.server.channels import channel_option
from components.pages.server.rule_preview import impact_panel
from components.pages.server.tab_outlines import list_outline, once_loaded
from components.ui.badge import role_mark
from components.ui.button import button, link_button
from components.ui.card import card, card_title, empty_card
from components.ui.chart import base_line, drawing, heading_cell, table_behind
from components.ui.dialog import confirm
from components.ui.effects.every import every
from components.ui.effects.texts import filled
from components.ui.field import fault_line, fault_of, field, select_field, text_input
from locales import _
from settings import settings
from state.core.timing import MOVE_POLL_SECONDS
from state.dashboard.server_page import ServerPageState
from state.server.move import END, NONE, CoverageDayView, MoveChoiceView, MoveState, MovingRoleView, StandingBarView

_STANDINGS = (
    # Translators: members who verified a wallet, and whom a rule gives the role that they have.
    ("right", _("Verified, and right"), "bg-success", "fill-success"),
    ("wrong", _("Verified, but no rule says yes"), "bg-error", "fill-error"),
    ("unverified", _("No wallet counts here"), "bg-warning", "fill-warning"),
    ("unknown", _("Unknown"), "bg-base-300", "fill-base-300"),
)
"""In the order of the services: each standing's name, and its colours in a bar and in the chart."""


def move_tab() -> rx.Component:
    """Return the move of the server, or the form that begins one."""
    return rx.el.div(
        every(MOVE_POLL_SECONDS, MoveState.look, seen_only=True),
        once_loaded(MoveState, MoveState.load, _shown(), list_outline(2, "h-48", "gap-5")),
        _question(),
    )


def _shown() -> rx.Component:
    return rx.el.div(
        rx.cond(MoveState.state == NONE, _none(), _move()),
        rx.cond((MoveState.state == NONE) | (MoveState.state == "approved") | MoveState.editing, _form()),
        class_name="grid grid-cols-1 gap-5",
    )


def _none() -> rx.Component:
    return card(
        card_title(
            _("Move from another bot"),
            _(
                "Hand roles over to {bot} from a date to a date. Until you approve the end, nobody loses one of these "
                "roles for lack of a wallet: the panel and one message tell members what to do, and you see who has "
                "arrived."
            ).format(bot=settings().bot_name),
        ),
        rx.el.ol(
            rx.el.li(_("Make or import the rules on the Rules tab, and activate them.")),
            rx.el.li(_("Begin the move, and switch the other bot off for these roles.")),
            rx.el.li(_("Members verify their wallets. At the end you see who would lose a role, and approve it.")),
            class_name="muted grid list-inside list-decimal grid-cols-1 gap-1 text-sm",
        ),
    )


def _move() -> rx.Component:
    over = MoveState.state == "over"
    return rx.fragment(
        card(
            rx.el.div(
                rx.el.div(
                    rx.el.h2(MoveState.headline, class_name="display text-xl font-semibold", role="status"),
                    rx.el.p(
                        rx.match(
                            MoveState.state,
                            ("approved", _("The rules decide about its roles. Undo gives back what the end took.")),
                            ("over", _("Nobody loses a role before you approve the end.")),
                            _("Nobody loses one of its roles for lack of a wallet before you approve its end."),
                        ),
                        class_name="muted mt-1",
                    ),
                    class_name="min-w-0 flex-1 basis-72",
                ),
                rx.el.div(
                    rx.cond(
                        over | (MoveState.state == "running"),
                        button(
                            rx.cond(over, _("Review and approve the end"), _("Preview the end")),
                            kind="primary",
                            icon="list-checks",
                            disabled=MoveState.working,
                            on_click=MoveState.ask_end,
                        ),
                    ),
                    rx.cond(
                        (MoveState.state != "approved") & ~MoveState.editing,
                        button(_("Change"), icon="pencil", on_click=MoveState.edit),
                    ),
                    button(
                        rx.cond(MoveState.state == "approved", _("Undo the move"), _("Call it off")),
                        kind="quiet",
                        icon="undo-2",
                        busy=MoveState.working,
                        on_click=MoveState.ask_undo,
                    ),
                    class_name="flex flex-wrap gap-2",
                ),
                class_name="flex flex-wrap items-start gap-4",
            )
        ),
        card(
            card_title(_("Progress"), filled(_("Holders of each role, counted on {time}."), time=MoveState.counted)),
            _legend(),
            rx.el.ul(rx.foreach(MoveState.roles, _role), class_name="divide-y divide-base-300"),
        ),
        rx.cond(MoveState.days, _days()),
    )


def _legend() -> rx.Component:
    return rx.el.ul(
        *(
            rx.el.li(
                rx.el.span(class_name=f"size-3 rounded-sm border hairline {bar}", aria_hidden="true"),
                label,
                class_name="inline-flex items-center gap-2",
            )
            for _key, label, bar, _fill in _STANDINGS
        ),
        class_name="muted mb-2 flex flex-wrap gap-x-5 gap-y-1 text-sm",
    )


def _role(role: rx.vars.ObjectVar[MovingRoleView]) -> rx.Component:
    counts = (role.right, role.wrong, role.unverified, role.unknown)
    return rx.el.li(
        rx.el.div(
            role_mark(role.name, role.color),
            rx.el.span(role.summary, class_name="muted text-sm"),
            class_name="flex flex-wrap items-baseline justify-between gap-x-4",
        ),
        rx.el.div(
            *(
                rx.el.span(
                    class_name=f"block h-full {bar}", style={"width": rx.Var.create(role.shares).to(list[str])[place]}
                )
                for place, (_key, _label, bar, _fill) in enumerate(_STANDINGS)
            ),
            class_name="mt-2 flex h-3 overflow-hidden rounded-full border hairline",
            aria_hidden="true",
        ),
        rx.el.div(
            *(
                _count(role, key, label, count)
                for (key, label, _bar, _fill), count in zip(_STANDINGS, counts, strict=True)
            ),
            class_name="mt-2 grid grid-cols-2 gap-2 sm:grid-cols-4",
        ),
        rx.cond(MoveState.named_role == role.id, _names()),
        rx.cond(role.undecided != "", rx.el.p(role.undecided, class_name="mt-2 text-sm")),
        rx.cond(role.taken != "", rx.el.p(role.taken, class_name="mt-2 text-sm font-medium")),
        rx.cond(
            role.rivals != "",
            rx.el.p(
                rx.icon("triangle-alert", size=16, class_name="mt-0.5 shrink-0 text-warning", aria_hidden="true"),
                rx.el.span(
                    role.rivals,
                    " ",
                    rx.el.a(
                        _("The Health tab shows how to end it."),
                        href=f"{ServerPageState.config_url}&tab=health",
                        class_name="link",
                    ),
                ),
                class_name="mt-2 flex gap-2 text-sm",
            ),
        ),
        key=role.id,
        class_name="py-4",
    )


def _count(role: rx.vars.ObjectVar[MovingRoleView], standing: str, label: str, count: rx.Var[int]) -> rx.Component:
    is_open = (MoveState.named_role == role.id) & (MoveState.named_standing == standing)
    return rx.el.button(
        rx.el.span(count, class_name="display block text-xl font-semibold tabular-nums"),
        rx.el.span(label, class_name="muted block text-xs"),
        rx.el.span(" ", role.name, class_name="sr-only"),
        type="button",
        disabled=(count == 0) | (MoveState.state == "approved"),
        on_click=MoveState.show_names(role.id, standing),
        aria_pressed=is_open,
        class_name=rx.cond(
            is_open,
            "rounded-field border border-primary bg-base-200 px-3 py-2 text-start",
            "rounded-field border hairline bg-base-200 px-3 py-2 text-start enabled:hover:border-primary",
        ),
    )


def _names() -> rx.Component:
    """Return the names behind the number that was pressed."""
    return rx.el.div(
        rx.el.h3(MoveState.named_title, class_name="break-words font-semibold"),
        rx.cond(
            MoveState.names_hidden,
            rx.el.p(
                _("So few people meet this, or do not, that names would show which wallets are theirs."),
                class_name="muted mt-1 text-sm",
            ),
            rx.el.ul(
                rx.foreach(MoveState.names, lambda name: rx.el.li(name, dir="auto", class_name="cut-name")),
                class_name="mt-2 grid max-h-72 grid-cols-1 gap-x-6 gap-y-1 overflow-y-auto text-sm sm:grid-cols-2",
                tab_index=0,
                aria_label=MoveState.named_title,
            ),
        ),
        rx.cond(
            MoveState.names_more > 0,
            button(
                filled(_("Show more ({count})"), count=MoveState.names_more),
                class_name="btn-sm mt-3",
                on_click=MoveState.more_names,
            ),
        ),
        class_name="mt-2 rounded-field border hairline p-4",
    )


def _days() -> rx.Component:
    return card(
        card_title(_("Day by day"), _("All roles of the move together, as last counted on each day (UTC).")),
        drawing("h-36", MoveState.chart_summary, rx.foreach(MoveState.bars, _bar), base_line()),
        rx.el.p(MoveState.chart_summary, class_name="muted mt-3 text-sm"),
        table_behind(
            _("Numbers as a table"),
            heading_cell(_("Day"), "col"),
            *(heading_cell(label, "col") for _key, label, _bg, _fill in _STANDINGS),
            rows=rx.foreach(MoveState.days, _row),
            caption=_("Holders by day"),
        ),
    )  # fmt: skip


def _bar(bar: rx.vars.ObjectVar[StandingBarView]) -> rx.Component:
    return rx.el.svg.rect(
        x=bar.x,
        y=bar.y,
        width=bar.width,
        height=bar.height,
        key=bar.key,
        class_name=rx.match(bar.standing, *((key, fill) for key, _label, _bg, fill in _STANDINGS), ""),
    )


def _row(one: rx.vars.ObjectVar[CoverageDayView]) -> rx.Component:
    return rx.el.tr(
        heading_cell(one.day, "row"),
        *(rx.el.td(count, class_name="tabular-nums") for count in (one.right, one.wrong, one.unverified, one.unknown)),
        key=one.day,
    )


def _form() -> rx.Component:
    is_new = (MoveState.state == NONE) | (MoveState.state == "approved")
    return rx.cond(
        MoveState.choices,
        card(
            card_title(rx.cond(is_new, _("Begin a move"), _("Change the move"))),
            rx.el.div(
                rx.el.fieldset(
                    rx.el.legend(_("Roles that are handed over"), class_name="text-sm font-semibold"),
                    rx.el.div(
                        rx.foreach(MoveState.choices, _choice), class_name="mt-2 grid grid-cols-1 gap-2 sm:grid-cols-2"
                    ),
                    fault_line(MoveState, "roles"),
                ),
                rx.el.div(
                    rx.cond(
                        MoveState.begins_open,
                        _date("beginsAt", _("First day"), MoveState.begins, MoveState.set_begins, _("Empty: now.")),
                    ),
                    _date(
                        "until",
                        _("Last day"),
                        MoveState.until,
                        MoveState.set_until,
                        _("Members are asked to verify a wallet until the end of this day (UTC)."),
                    ),
                    class_name="grid grid-cols-1 gap-4 sm:grid-cols-2",
                ),
                select_field(
                    _("Announce it in"),
                    "channelId",
                    rx.el.option(_("No channel"), value=""),
                    rx.foreach(MoveState.options, channel_option),
                    value=MoveState.channel,
                    on_change=MoveState.set_channel,
                    hint=_("One message, which mentions nobody. The panel in the verification channel says it too."),
                    error=fault_of(MoveState, "channelId"),
                ),
                rx.el.div(
                    button(
                        rx.cond(is_new, _("Begin the move"), _("Save")),
                        kind="primary",
                        busy=MoveState.saving,
                        busy_label=_("Saving..."),
                        on_click=MoveState.save,
                    ),
                    rx.cond(MoveState.editing, button(_("Cancel"), kind="quiet", on_click=MoveState.cancel)),
                    class_name="flex flex-wrap gap-2",
                ),
                class_name="flex flex-col gap-5",
            ),
        ),
        empty_card(
            "truck",
            _("No rule gives a role yet"),
            _("A move hands over roles that rules give. Make or import rules first."),
            link_button(_("Go to the rules"), f"{ServerPageState.config_url}&tab=rules", kind="primary"),
        ),
    )


def _date(
    name: str, label: str, value: rx.Var[str] | str, on_change: rx.event.EventType[str], hint: str
) -> rx.Component:
    return field(
        label,
        text_input(name, type="date", min=MoveState.first_day, value=value, on_change=on_change),
        hint=hint,
        error=fault_of(MoveState, name),
    )


def _choice(role: rx.vars.ObjectVar[MoveChoiceView]) -> rx.Component:
    return rx.el.label(
        rx.el.input(
            type="checkbox",
            checked=role.chosen,
            on_change=lambda chosen: MoveState.choose(role.id, chosen),
            class_name="checkbox checkbox-primary",
        ),
        role_mark(role.name, role.color),
        key=role.id,
        class_name="flex min-w-0 cursor-pointer items-center gap-3 break-words",
    )


def _question() -> rx.Component:
    over = MoveState.state == "over"
    is_end = MoveState.asked == END
    return confirm(
        is_open=MoveState.asked != "",
        on_open_change=MoveState.close_dialog,
        title=rx.cond(
            is_end,
            rx.cond(over, _("Approve the end of the move?"), _("What the end of the move would do")),
            rx.cond(MoveState.state == "approved", _("Undo the move?"), _("Call the move off?")),
        ),
        text=rx.cond(
            is_end,
            rx.cond(
                over,
                _(
                    "Rules decide about its roles from now on. Those who would lose one are checked once more, after "
                    "the grace time of the rules; too many at once wait for another approval."
                ),
                _("As if the move ended now. You can approve the end once its time is over."),
            ),
            rx.cond(
                MoveState.state == "approved",
                _(
                    "Members get back what the end took. Everybody keeps the roles of the move until a rule says yes "
                    "to them again."
                ),
                _(
                    "Everybody keeps the roles of the move until a rule says yes to them again. From then on rules "
                    "decide as usual."
                ),
            ),
        ),
        body=rx.cond(is_end, rx.el.div(impact_panel(), class_name="mt-5"), rx.fragment()),
        cancel=button(_("Not now"), kind="quiet", on_click=MoveState.close_dialog(False)),
        action=rx.cond(
            is_end,
            rx.cond(over, button(_("Approve the end"), kind="danger", on_click=MoveState.confirm), rx.fragment()),
            button(
                rx.cond(MoveState.state == "approved", _("Undo the move"), _("Call it off")),
                kind="primary",
                on_click=MoveState.confirm,
            ),
        ),
    )
