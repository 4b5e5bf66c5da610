"""The Rules tab of a server: what each rule asks for, which role it gives, and its actions."""

from typing import Any

import reflex as rx

from components.pages.server.protected_roles import protected_roles
from components.pages.server.rule_preview import impact_panel
from components.pages.server.tab_outlines import list_outline, once_loaded
from components.ui.badge import badge, role_mark
from components.ui.button import button, link_button
from components.ui.card import card, card_title, empty_card
from components.ui.dialog import confirm
from components.ui.effects.every import every
from components.ui.effects.texts import about, counted, filled
from components.ui.field import search_input
from locales import _, forms
from state.core.timing import RULES_POLL_SECONDS, SEARCH_DEBOUNCE_MILLISECONDS
from state.dashboard.server_page import ServerPageState
from state.server.new_contract import MigrationState
from state.server.new_role import NewRoleState
from state.server.protected_roles import ProtectedRolesState
from state.server.rules import ACTIVATE, DELETE, FEW, FILTER_INPUT, PAUSE, RESUME, Line, RuleRowView, RulesState


def rules_tab() -> rx.Component:
    """Return the list of rules, and the dialog before an action."""
    # The rules decide which contracts the card below offers.
    confirmed = [RulesState.confirm, MigrationState.load]
    return rx.el.div(
        every(RULES_POLL_SECONDS, RulesState.look, seen_only=True),
        once_loaded(
            RulesState,
            RulesState.load,
            rx.cond(
                RulesState.rows,
                rx.el.div(
                    rx.cond((_count() > FEW) | (RulesState.filter != ""), _filter()),
                    rx.cond(RulesState.waiting > 1, _all_in_shadow()),
                    rx.cond(
                        _matching() > 0,
                        rx.el.ul(rx.foreach(RulesState.rows, _if_it_matches), class_name="grid grid-cols-1 gap-4"),
                        _nothing_found(),
                    ),
                    rx.el.p(RulesState.room, class_name="muted mt-3 text-sm"),
                ),
                _none(),
            ),
            list_outline(2, "h-32", "gap-4"),
        ),
        protected_roles(),
        confirm(
            is_open=RulesState.asked_id != 0,
            on_open_change=RulesState.close_dialog,
            title=RulesState.asked_title,
            text=RulesState.asked_text,
            body=rx.el.div(impact_panel(), class_name="mt-5"),
            cancel=button(_("Leave it as it is"), kind="quiet", on_click=RulesState.close_dialog(False)),
            action=rx.cond(
                RulesState.asked_what == DELETE,
                button(RulesState.asked_action, kind="danger", on_click=confirmed),
                button(RulesState.asked_action, kind="primary", on_click=confirmed),
            ),
        ),
    )


def _count() -> rx.vars.NumberVar[int]:
    return rx.Var.create(RulesState.rows).length()


def _matching() -> rx.vars.NumberVar[Any]:
    return _count() - rx.Var.create(RulesState.left_out).length()


def _if_it_matches(rule: rx.vars.ObjectVar[RuleRowView]) -> rx.Component:
    return rx.cond(rx.Var.create(RulesState.left_out).contains(rule.id), rx.fragment(), _rule(rule))


def _filter() -> rx.Component:
    return rx.el.div(
        search_input(
            FILTER_INPUT,
            _("Filter the rules"),
            "min-w-0 flex-1 basis-full sm:basis-64",
            default_value=RulesState.filter,
            placeholder=_("Rule, role, collection or contract"),
            on_change=RulesState.narrow.debounce(SEARCH_DEBOUNCE_MILLISECONDS),
        ),
        rx.el.p(
            rx.cond(
                RulesState.filter != "",
                counted("{matching} of {count} rule", "{matching} of {count} rules", _count(), matching=_matching()),
                counted("{count} rule", "{count} rules", _count()),
            ),
            class_name="muted text-sm tabular-nums",
            role="status",
        ),
        class_name="mb-4 flex flex-wrap items-center gap-x-4 gap-y-2",
    )


def _nothing_found() -> rx.Component:
    return empty_card(
        "search-x",
        _("No rule found"),
        filled(
            _("No rule here has “{filter}” in its name, its role, its conditions or a contract address."),
            filter=RulesState.filter,
        ),
        button(_("Show all rules"), on_click=[RulesState.show_all, rx.set_focus(FILTER_INPUT)]),
    )


def _made(count: rx.Var[int]) -> tuple[rx.Var[int]]:
    return (count,)


_IMPORT_WORDS = {
    "collabland": "Collab.Land",
    "collablandHint": _("The rules of your server as Collab.Land's API gives them out: a list of rules or tpcs."),
    "guild": "Guild",
    "guildHint": _("Your guild as guild.xyz gives it out, with its roles and their requirements."),
    "holdfast": _("Exported rules"),
    "holdfastHint": _("A file that Export rules has made, here or on another server."),
    "source": _("Where the rules come from"),
    "document": _("Document"),
    "limits": _("At most 1 MiB and 200 rules. Looking stores nothing."),
    "look": _("Look at the rules"),
    "reading": _("Reading the rules..."),
    "choose": _("Choose a JSON file"),
    "large": _("The document is larger than 1 MiB."),
    "unread": _("The document could not be read."),
    "unsent": _("The document could not be sent. Please try again."),
    "become": _("What they become ({count})"),
    "toMake": _("Rules to make"),
    "nothing": _("Nothing in the document can become a rule here."),
    "skipped": _("Skipped ({count})"),
    "skippedList": _("Skipped"),
    "make": forms("Make {count} rule in shadow", "Make {count} rules in shadow"),
    "making": _("Making the rules..."),
    "made": forms(
        "{count} rule is made, in shadow. Look at what each would do, then activate it.",
        "{count} rules are made, in shadow. Look at what each would do, then activate it.",
    ),
    "close": _("Close"),
}


class _RuleImport(rx.Component):
    """Sends a document of rules in a call of its own, and shows what each rule becomes."""

    library = "$/public/screens/rule_import.js"
    tag = "RuleImport"

    server: rx.Var[int]
    words: rx.Var[dict[str, str]]

    on_made: rx.EventHandler[_made]


def bring_rules() -> rx.Component:
    """Return the import of rules, and the export of all."""
    return card(
        card_title(
            _("Bring rules, or take them along"),
            _(
                "Rules of Collab.Land or Guild, or of another server, become rules in shadow: they give and take "
                "nothing until you activate them. What has no exact counterpart here is skipped, and named."
            ),
        ),
        _RuleImport.create(
            server=ServerPageState.server_id,
            words=_IMPORT_WORDS,
            on_made=[RulesState.imported, ProtectedRolesState.load, MigrationState.load],
            key=ServerPageState.server_id,
        ),
        rx.el.div(
            link_button(
                _("Export rules"),
                f"/api/servers/{ServerPageState.server_id}/rules.json",
                icon="download",
                leaves_app=True,
                download=True,
                class_name="btn-sm",
            ),
            rx.el.span(_("All rules as a document for a repository or another server."), class_name="muted text-sm"),
            class_name="mt-5 flex flex-wrap items-center gap-3 border-t hairline pt-5",
        ),
        class_name="mt-8",
    )


def _all_in_shadow() -> rx.Component:
    return rx.el.div(
        rx.el.p(filled(_("{count} rules are in shadow."), count=RulesState.waiting), class_name="min-w-0 font-medium"),
        button(_("What all of them would do"), icon="eye", class_name="btn-sm", on_click=RulesState.ask_all),
        class_name="mb-4 flex flex-wrap items-center justify-between gap-3",
    )


def _none() -> rx.Component:
    return empty_card(
        "list-plus",
        _("No rules yet"),
        _("A rule says what somebody has to hold and which role that gives."),
        link_button(_("Add Rule"), ServerPageState.add_rule_url, kind="primary", icon="plus"),
    )


def _rule(rule: rx.vars.ObjectVar[RuleRowView]) -> rx.Component:
    return rx.el.li(
        rx.el.div(
            rx.el.h2(rx.el.bdi(rule.name), class_name="min-w-0 wrap-anywhere text-lg font-semibold"),
            _state_badge(rule),
            rx.foreach(rule.chains, lambda chain: badge(chain)),
            rx.cond(rule.takes_over, badge(_("Takes the role over"), "info")),
            rx.cond(rule.delegated, badge(_("Counts delegated tokens"), "info")),
            class_name="flex flex-wrap items-center gap-2",
        ),
        rx.el.div(rx.foreach(rule.lines.to(list[Line]), rule_line), class_name="muted mt-2 flex flex-col gap-0.5"),
        rx.cond(rule.reach != "", rx.el.p(rule.reach, class_name="muted mt-2 text-sm tabular-nums")),
        rx.cond(
            rule.pause_reason != "", rx.el.p(rule.pause_reason, class_name="mt-2 text-sm font-medium text-warning")
        ),
        rx.cond(
            rule.role_gone,
            button(
                _("Give another role in its place"),
                icon="replace",
                class_name="btn-sm mt-2",
                aria_label=about(_("Give another role in its place"), rule.name),
                on_click=[NewRoleState.open_form(rule.role_id), rx.scroll_to("replace-role")],
            ),
        ),
        rx.el.div(
            rx.el.div(
                rx.el.span(
                    rx.icon("arrow-right", size=16, class_name="shrink-0", aria_hidden="true"),
                    role_mark(rule.role_name, rule.role_color),
                    class_name="flex min-w-0 items-center gap-3",
                ),
                rx.el.span(counted("{count} holder", "{count} holders", rule.holders), class_name="text-sm"),
                rx.cond(
                    rx.Var.create(ProtectedRolesState.ids).to(list).contains(rule.role_id),
                    rx.el.span(_("Never taken, because the role is protected"), class_name="muted text-sm"),
                    rx.el.span(rule.removal, class_name="muted text-sm"),
                ),
                class_name="flex flex-wrap items-center gap-x-3 gap-y-1",
            ),
            _actions(rule),
            class_name="mt-4 flex flex-wrap items-center justify-between gap-x-6 gap-y-3",
        ),
        key=rule.id,
        class_name="surface p-5 sm:p-6",
    )


def rule_line(line: rx.vars.ObjectVar[Line]) -> rx.Component:
    """Return one line of a rule in words, indented like the rule."""
    indent = rx.match(line.depth, (0, ""), (1, "ps-5"), (2, "ps-10"), "ps-15")
    return rx.el.p(line.text, class_name=f"break-words {indent}")


def _state_badge(rule: rx.vars.ObjectVar[RuleRowView]) -> rx.Component | rx.Var[rx.Component]:
    return rx.match(
        rule.state,
        ("active", badge(_("Active"), "good")),
        ("paused", badge(_("Paused"), "warning")),
        badge(_("Shadow"), "info"),
    )


def _actions(rule: rx.vars.ObjectVar[RuleRowView]) -> rx.Component:
    busy = RulesState.working == rule.id
    return rx.el.div(
        link_button(
            _("Edit"),
            rule.edit_url,
            icon="pencil",
            class_name="btn-sm",
            aria_label=filled(_("Edit {name}"), name=rule.name),
        ),
        rx.match(
            rule.state,
            ("paused", _action(_("Resume"), "play", busy, rule, RESUME)),
            ("shadow", _action(_("What it would do"), "eye", busy, rule, ACTIVATE)),
            _action(_("Pause"), "pause", busy, rule, PAUSE),
        ),
        button(
            _("Delete"),
            kind="quiet",
            icon="trash-2",
            class_name="btn-sm",
            disabled=busy,
            on_click=RulesState.ask(rule.id, DELETE),
            aria_label=about(_("Delete"), rule.name),
        ),
        role="group",
        aria_label=rule.name,
        class_name="flex flex-wrap gap-2",
    )


def _action(
    label: str, icon: str, busy: rx.Var[bool] | bool, rule: rx.vars.ObjectVar[RuleRowView], what: str
) -> rx.Component:
    return button(
        label,
        icon=icon,
        busy=busy,
        class_name="btn-sm",
        on_click=RulesState.ask(rule.id, what),
        aria_label=about(label, rule.name),
    )
