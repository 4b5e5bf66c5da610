"""The card about a collection that has another contract now: the form, what each rule becomes, and the dialog."""

import reflex as rx

from components.pages.server.rule_preview import impact_panel
from components.pages.server.rules import rule_line
from components.ui.badge import role_mark
from components.ui.button import button
from components.ui.card import card, card_title
from components.ui.dialog import confirm
from components.ui.effects.texts import about, counted
from components.ui.field import fault_of, select_field, switch, text_field
from locales import _
from state.rule_form.chain_options import chain_options
from state.server.new_contract import END, LeftRule, MigratedRule, MigrationState, RunningMigrationView
from state.server.rules import Line


def contract_card() -> rx.Component:
    """Return the form for "this contract became that one"; nothing while no rule names a contract."""
    return rx.cond(
        MigrationState.contracts,
        card(
            card_title(
                _("A collection has a new contract"),
                _(
                    "Change all rules that name the old contract at once. Look first: nothing changes before you "
                    "confirm, and Activity has an undo."
                ),
            ),
            rx.cond(MigrationState.running, _running()),
            _form(),
            rx.cond(MigrationState.looked, _found()),
            _question(),
            class_name="mt-8",
        ),
    )


def _running() -> rx.Component:
    return rx.el.ul(
        rx.foreach(MigrationState.running, _one_running),
        class_name="mb-5 grid grid-cols-1 gap-3",
        aria_label=_("Migrations that run"),
    )


def _one_running(one: rx.vars.ObjectVar[RunningMigrationView]) -> rx.Component:
    return rx.el.li(
        rx.el.div(
            rx.el.p(one.title, class_name="break-words font-medium"),
            rx.el.p(one.text, class_name="muted text-sm"),
            class_name="min-w-0 flex-1 basis-60",
        ),
        button(
            _("Let only the new one count"),
            class_name="btn-sm",
            disabled=MigrationState.working,
            on_click=MigrationState.ask_end(one.id),
            aria_label=about(_("Let only the new one count"), one.title),
        ),
        key=one.id,
        class_name="flex flex-wrap items-center gap-3 rounded-field border hairline p-4",
    )


def _form() -> rx.Component:
    return rx.el.div(
        select_field(
            _("Old contract"),
            "oldContract",
            rx.foreach(MigrationState.contracts, lambda one: rx.el.option(one.label, value=one.key)),
            value=MigrationState.old,
            on_change=MigrationState.set_old,
            error=rx.cond(
                (MigrationState.fault_field == "contract") | (MigrationState.fault_field == "chain"),
                MigrationState.fault_text,
                "",
            ),
        ),
        rx.el.div(
            text_field(
                _("New contract"),
                "newContract",
                value=MigrationState.new,
                on_change=MigrationState.set_new,
                placeholder="0x…",
                error=fault_of(MigrationState, "newContract"),
            ),
            select_field(
                _("Chain of the new contract"),
                "newChain",
                rx.el.option(_("The same chain"), value=""),
                *(rx.el.option(one.label, value=one.name, disabled=not one.offered) for one in chain_options()),
                value=MigrationState.new_chain,
                on_change=MigrationState.set_new_chain,
                error=fault_of(MigrationState, "newChain"),
            ),
            class_name="grid grid-cols-1 gap-4 sm:grid-cols-2",
        ),
        switch(
            "sameIds",
            _("Token IDs stay the same"),
            _("Rules on certain token IDs are carried over only if each token has the same ID on the new contract."),
            checked=MigrationState.same_ids,
            on_change=MigrationState.set_same_ids,
        ),
        switch(
            "bothCount",
            _("Both count for now"),
            _("What members hold on either contract counts, so nobody loses a role halfway through."),
            checked=MigrationState.both,
            on_change=MigrationState.set_both,
        ),
        rx.cond(
            MigrationState.both,
            text_field(
                _("Last day on which both count"),
                "bothUntil",
                type="date",
                value=MigrationState.until,
                min=MigrationState.first_day,
                on_change=MigrationState.set_until,
                hint=_("Empty: until you end it here."),
                error=fault_of(MigrationState, "until"),
            ),
        ),
        rx.el.div(
            button(_("Look at what changes"), icon="eye", busy=MigrationState.looking, on_click=MigrationState.look)
        ),
        class_name="grid grid-cols-1 gap-5",
    )


def _found() -> rx.Component:
    return rx.el.div(
        rx.cond(
            MigrationState.rules,
            rx.el.div(
                rx.el.h3(_("What the rules become"), class_name="font-semibold"),
                rx.el.ul(
                    rx.foreach(MigrationState.rules, _rule), class_name="mt-2 grid grid-cols-1 divide-y divide-base-300"
                ),
                button(
                    counted("Replace in {count} rule", "Replace in {count} rules", MigrationState.changing),
                    kind="primary",
                    icon="replace",
                    busy=MigrationState.working,
                    class_name="mt-3",
                    on_click=MigrationState.ask_apply,
                ),
            ),
        ),
        rx.cond(
            MigrationState.left,
            rx.el.div(
                rx.el.h3(_("What stays as it is"), class_name="font-semibold"),
                rx.el.ul(
                    rx.foreach(MigrationState.left, _left), class_name="mt-2 grid grid-cols-1 divide-y divide-base-300"
                ),
            ),
        ),
        class_name="mt-6 grid grid-cols-1 gap-6 border-t hairline pt-6",
        role="status",
    )


def _rule(rule: rx.vars.ObjectVar[MigratedRule]) -> rx.Component:
    notes = rule.notes.to(list[str])
    return rx.el.li(
        rx.el.div(
            rx.el.h4(rule.name, class_name="min-w-0 break-words font-medium"),
            role_mark(rule.role_name, rule.role_color),
            class_name="flex flex-wrap items-center gap-x-3",
        ),
        rx.el.p(rx.el.s(rule.before), class_name="muted break-words text-sm"),
        rx.el.div(rx.foreach(rule.lines.to(list[Line]), rule_line), class_name="mt-1 text-sm"),
        rx.cond(notes, rx.el.p(notes.join(" "), class_name="muted mt-1 text-sm")),
        key=rule.id,
        class_name="py-3",
    )


def _left(rule: rx.vars.ObjectVar[LeftRule]) -> rx.Component:
    return rx.el.li(
        rx.el.p(rule.name, class_name="break-words font-medium"),
        rx.el.p(rule.why, class_name="muted break-words text-sm"),
        key=rule.id,
        class_name="py-3",
    )


def _question() -> rx.Component:
    return confirm(
        is_open=MigrationState.asked != "",
        on_open_change=MigrationState.close_dialog,
        title=MigrationState.asked_title,
        text=rx.cond(
            MigrationState.asked == END,
            _("From now on only the new contract counts. Removals follow each rule, its grace time and the breaker."),
            rx.cond(
                MigrationState.both,
                _("What members hold on either contract counts from now on."),
                _(
                    "Only the new contract counts from now on. Removals follow each rule, its grace time and the "
                    "breaker."
                ),
            ),
        ),
        body=rx.el.div(impact_panel(), class_name="mt-5"),
        cancel=button(_("Leave it as it is"), kind="quiet", on_click=MigrationState.close_dialog(False)),
        action=button(
            rx.cond(MigrationState.asked == END, _("Let only the new one count"), _("Replace the contract")),
            kind="primary",
            on_click=MigrationState.confirm,
        ),
    )
