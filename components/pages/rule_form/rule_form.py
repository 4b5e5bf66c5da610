"""The form that adds or edits a verification rule."""

import reflex as rx

from components.layout.ended_session import ended_session, log_in_again
from components.layout.frame import member_frame, page_head
from components.pages.rule_form.addresses import ADDRESSES
from components.pages.rule_form.call_fields import call_form
from components.pages.rule_form.condition_fields import TYPE_INPUT, token_form
from components.pages.rule_form.conditions import rule_conditions
from components.pages.rule_form.reach import reach_panel
from components.pages.rule_form.tiers import role_option, tiers, tiers_left_out
from components.pages.rule_form.try_address import trial_form, trial_panel
from components.pages.server.rule_preview import impact_panel
from components.pages.server.rules import rule_line
from components.pages.server.tab_outlines import bot_is_away, missing_server
from components.ui.badge import role_mark
from components.ui.button import action_bar, button, link_button
from components.ui.card import card, empty_card
from components.ui.dialog import confirm, leave_question
from components.ui.effects.by_address import in_address
from components.ui.effects.changed import when_changed
from components.ui.effects.every import every
from components.ui.effects.refused_field import new_field, refused_field
from components.ui.effects.since_opened import since_opened
from components.ui.effects.texts import filled
from components.ui.field import field, number_field, select_field, switch
from components.ui.placeholders import could_not_load, skeleton, waiting
from components.ui.tooltip import tooltip
from locales import _
from state.core.session import SessionState
from state.core.timing import SERVER_POLL_SECONDS
from state.dashboard.server_page import ServerPageState
from state.rule_form.condition_fields import CONTRACT_INPUT, TOKEN_INPUT
from state.rule_form.role_options import GRACE, NOW
from state.rule_form.rule_form import RULE_PARAMETER, RuleFormState

LATE = [CONTRACT_INPUT, TOKEN_INPUT, ADDRESSES]
"""Entries that the state gets after a pause in typing, or when they lose the focus."""


def rule_form() -> rx.Component:
    """Return the form."""
    edits = rx.Var.create(RuleFormState.rule_id) != 0
    return member_frame(
        page_head(
            rx.cond(in_address(RULE_PARAMETER), _("Edit Verification Rule"), _("Add Verification Rule")),
            rx.cond(ServerPageState.name, filled(_("For {name}"), name=ServerPageState.name), ""),
            link_button(_("Back"), ServerPageState.config_url, kind="quiet", icon="arrow-left"),
        ),
        *since_opened(
            RuleFormState.turn,
            _of_this_visit(edits),
            waiting(rx.run_script("window.location.reload()"), skeleton("h-72")),
        ),
        narrow=True,
    )


def _of_this_visit(edits: rx.Var[bool]) -> rx.Component:
    return rx.cond(
        RuleFormState.missing,
        _missing(),
        rx.cond(
            RuleFormState.unknown_server,
            missing_server(whole_screen=False),
            rx.cond(
                RuleFormState.load_fault != "",
                could_not_load(RuleFormState.load, RuleFormState.load_fault),
                rx.cond(
                    # Hide fields that are about to be reset or filled.
                    (RuleFormState.visit == SessionState.visit) & (~edits | RuleFormState.loaded),
                    rx.el.div(
                        rx.cond(ServerPageState.bot_invited, rx.fragment(), _bot_is_away()),
                        _form(),
                        token_form(),
                        trial_form(),
                        call_form(),
                        _question(),
                        leave_question(changed=RuleFormState.changed, saved=RuleFormState.saved, late=LATE),
                        refused_field(RuleFormState.refusals, RuleFormState.fault_field),
                        new_field(RuleFormState.added, TYPE_INPUT),
                    ),
                    waiting(RuleFormState.load, skeleton("h-72")),
                ),
            ),
        ),
    )


def _bot_is_away() -> rx.Component:
    """Return the banner, which disappears when the bot is in the server; what was typed stays."""
    return rx.fragment(bot_is_away(), every(SERVER_POLL_SECONDS, RuleFormState.look_for_bot, seen_only=True))


def rule_form_left() -> rx.Component:
    """Return the screen for a session that ends while it is open."""
    text = _("Your session has ended, and this rule is not saved. Log in again to continue.")
    stored = rx.Var.create(RuleFormState.rule_id) != 0
    address = f"{ServerPageState.add_rule_url}{rx.cond(stored, f'&{RULE_PARAMETER}={RuleFormState.rule_id}', '')}"
    return ended_session(log_in_again("log-in", _("Please log in"), text, rx.Var.create(address)))


def _missing() -> rx.Component:
    return empty_card(
        "file-question",
        _("Rule not found"),
        _("It was deleted, or it is not one of this server's."),
        link_button(_("Back to the rules"), ServerPageState.config_url, kind="primary"),
    )


def _form() -> rx.Component:
    return rx.el.form(
        rx.cond(
            RuleFormState.full != "", rx.el.p(RuleFormState.full, class_name="font-medium text-warning", role="alert")
        ),
        card(
            _part(_("What members hold"), rx.el.div(rule_conditions(), key=RuleFormState.turn)),
            _name(),
            class_name="flex flex-col gap-6",
        ),
        card(
            _part(
                _("What they get"),
                _role(),
                rx.cond(RuleFormState.tiered, tiers(), rx.cond(RuleFormState.tiers, tiers_left_out())),
                rx.cond(RuleFormState.loaded, _options(), waiting(RuleFormState.load_roles, skeleton("h-96 sm:h-56"))),
            ),
            class_name="flex flex-col gap-6",
        ),
        _summary(),
        rx.cond(RuleFormState.room != "", rx.el.p(RuleFormState.room, class_name="muted text-end text-sm")),
        _actions(),
        on_submit=RuleFormState.save,
        class_name="flex flex-col gap-5",
    )


def _part(title: str, *children: rx.Component | rx.Var[rx.Component]) -> rx.Component:
    return rx.el.div(rx.el.h2(title, class_name="text-lg font-semibold"), *children, class_name="flex flex-col gap-5")


def _actions() -> rx.Component:
    edits = RuleFormState.rule_id != 0
    pending = RuleFormState.pending
    return action_bar(
        rx.cond(
            RuleFormState.fault != "",
            rx.el.p(RuleFormState.fault, class_name="mb-3 font-medium text-error", role="alert"),
        ),
        link_button(
            _("Cancel"),
            ServerPageState.config_url,
            kind="quiet",
            custom_attrs={"data-gives-up": "true"},  # assets/screens/leave_question.js
        ),
        rx.cond(
            edits,
            button(_("Save Changes"), kind="primary", type="submit", busy=pending, busy_label=_("Saving...")),
            button(_("Create Rule"), kind="primary", type="submit", busy=pending, busy_label=_("Creating...")),
        ),
    )


def _name() -> rx.Component:
    return field(
        _("Rule Name"),
        rx.el.div(
            rx.el.input(
                id="ruleName",
                name="ruleName",
                value=RuleFormState.rule_name,
                read_only=True,
                placeholder=_("Follows from the conditions"),
                title=RuleFormState.rule_name,
                class_name="input read-only-input",
            ),
            tooltip(
                rx.el.button(
                    rx.icon("refresh-cw", size=18, aria_hidden="true"),
                    type="button",
                    on_click=RuleFormState.refresh_name,
                    aria_label=_("Refresh rule name"),
                    class_name="btn btn-outline btn-square",
                ),
                _("Refresh the name"),
            ),
            class_name="flex gap-2",
        ),
        hint=_("The name is automatic."),
    )


def _role() -> rx.Component:
    grace = RuleFormState.removal == GRACE
    return rx.el.div(
        select_field(
            _("Role"),
            "roleId",
            rx.el.option(
                rx.cond(
                    RuleFormState.roles_failed,
                    _("The roles could not be loaded"),
                    rx.cond(RuleFormState.roles_loaded, _("Choose a role"), _("Loading roles...")),
                ),
                value="",
            ),
            rx.foreach(RuleFormState.roles, role_option),
            value=RuleFormState.role_id,
            on_change=RuleFormState.choose_role,
            hint=rx.cond(
                RuleFormState.roles_failed,
                rx.fragment(
                    RuleFormState.roles_fault,
                    " ",
                    rx.el.button(
                        _("Try again"),
                        type="button",
                        on_click=RuleFormState.load_roles,
                        class_name="link font-semibold",
                    ),
                ),
                _("A role that cannot be given shows the reason."),
            ),
        ),
        rx.el.div(
            select_field(
                _("When somebody no longer qualifies"),
                "removal",
                rx.el.option(_("Take the role at once"), value=NOW),
                rx.el.option(_("Wait for a grace time"), value=GRACE),
                value=RuleFormState.removal,
                on_change=RuleFormState.choose_removal,
                hint=rx.cond(grace, "", _("Once a second reading confirms it.")),
            ),
            rx.cond(
                grace,
                number_field(
                    _("Grace time in hours"),
                    "graceHours",
                    min=1,
                    step=1,
                    default_value=RuleFormState.grace_hours,
                    on_change=RuleFormState.enter_grace,
                ),
            ),
            class_name="flex flex-col gap-3",
        ),
        class_name="grid grid-cols-1 gap-6 sm:grid-cols-2",
    )


def _options() -> rx.Component:
    return rx.el.div(
        rx.cond(
            ~RuleFormState.paused,
            switch(
                "shadow",
                _("Shadow: only watch"),
                _("The rule gives and takes nothing. You see here and in the list what it would do."),
                default_checked=RuleFormState.shadow,
                on_change=RuleFormState.switch_shadow,
            ),
        ),
        switch(
            "delegated",
            _("Count delegated tokens"),
            _(
                "NFTs and coins in a vault count too if it delegates to the member's wallet at delegate.xyz on the "
                "same chain (never on Solana). Each counts once, for its owner first, then for the oldest delegation; "
                "view calls need the whole contract delegated, and address lists count no vault."
            ),
            default_checked=RuleFormState.delegated,
            on_change=RuleFormState.switch_delegated,
        ),
        switch(
            "takesOver",
            _("Take over this role"),
            _(
                "Take over a role assigned by another bot or by hand: members who have it keep it if they qualify and "
                "lose it otherwise."
            ),
            default_checked=RuleFormState.takes_over,
            on_change=RuleFormState.switch_takes_over,
        ),
        rx.cond(
            RuleFormState.members_unheard & RuleFormState.takes_over,
            rx.el.p(
                _(
                    "Discord does not tell the bot about members right now (Server Members Intent). It takes the role "
                    "over only from people it knows: who verified a wallet, has a role from a rule, or has used the "
                    "bot."
                ),
                class_name="muted text-sm",
            ),
        ),
        class_name="flex flex-col gap-4 border-t hairline pt-5",
    )


def _summary() -> rx.Component:
    return rx.cond(
        RuleFormState.lines,
        card(
            _part(
                _("In plain words"),
                rx.el.div(rx.foreach(RuleFormState.lines, rule_line), class_name="flex flex-col gap-1"),
                rx.cond(
                    RuleFormState.role_id != "",
                    rx.el.p(
                        rx.icon("arrow-right", size=16, aria_hidden="true"),
                        role_mark(RuleFormState.role_name, RuleFormState.role_color),
                        class_name="flex items-center gap-2",
                    ),
                ),
            ),
            rx.cond(
                RuleFormState.proposal_key != "",
                rx.el.div(
                    _part(_("Members affected"), impact_panel(in_form=True)),
                    when_changed(RuleFormState.proposal_key, RuleFormState.preview),
                    class_name="mt-6 border-t hairline pt-5",
                ),
            ),
            rx.el.div(_part(_("Try an address"), trial_panel()), class_name="mt-6 border-t hairline pt-5"),
            # The last, because its numbers arrive late and would move the button of another part.
            # Translators: the heading of how many wallets on chain meet the rule, and how many of them are verified.
            rx.el.div(_part(_("Reach"), reach_panel()), class_name="mt-6 border-t hairline pt-5"),
        ),
    )


def _question() -> rx.Component:
    return confirm(
        is_open=RuleFormState.asking,
        on_open_change=RuleFormState.think_again,
        title=rx.cond(
            RuleFormState.rule_id != 0,
            _("Save these changes?"),
            filled(_("Take over “{role}”?"), role=RuleFormState.role_name),
        ),
        text=rx.cond(
            RuleFormState.takes_over,
            filled(
                _("The rule also decides about members who got {role} from somebody else. They can lose it."),
                role=RuleFormState.role_name,
            ),
            _("This is what the rule changes for members."),
        ),
        body=rx.el.div(impact_panel(), class_name="mt-5"),
        # Translators: the button that goes back to the form without saving.
        cancel=button(_("Not yet"), kind="quiet", on_click=RuleFormState.think_again(False)),
        action=button(
            rx.cond(RuleFormState.rule_id != 0, _("Save"), _("Take over and create")),
            kind="primary",
            on_click=RuleFormState.confirm,
        ),
    )
