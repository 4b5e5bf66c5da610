"""The fields of a view call: a template to begin with, the contract, and what the function answers for a wallet."""

import reflex as rx

from components.ui.button import button
from components.ui.field import field, select_field, text_field, text_input
from locales import _
from state.rule_form.condition_fields import CONTRACT_INPUT
from state.rule_form.rule_form import RuleFormState
from state.rule_form.try_call import TEMPLATE_OPTIONS, WALLET_INPUT

CALL_FORM = "call-form"
"""The form of the wallet to try: Enter tries the call there instead of submitting the rule."""


def call_form() -> rx.Component:
    """Return the form of the wallet to try, outside the rule's form because forms cannot be nested."""
    return rx.el.form(
        id=CALL_FORM, on_submit=lambda _form: RuleFormState.try_call(RuleFormState.open), class_name="hidden"
    )


def called_contract() -> rx.Component:
    """Return the template and the contract, which come before the call's own fields."""
    options = [rx.el.option(_(label), value=key) for key, label in TEMPLATE_OPTIONS]
    return rx.el.div(
        select_field(
            _("Template"),
            "callTemplate",
            rx.el.option(_("Choose a template"), value=""),
            *options,
            value="",
            on_change=RuleFormState.choose_template(RuleFormState.open),
            hint=_("Fills in the fields below. Change the function's name if your contract uses another one."),
        ),
        text_field(
            _("Contract Address"),
            CONTRACT_INPUT,
            placeholder="0x...",
            default_value=RuleFormState.contract,
            on_change=lambda value: RuleFormState.enter_contract(RuleFormState.open, value),
            spell_check=False,
            hint=_("The contract that has the function, on the chain chosen above. It need not be a collection."),
        ),
        class_name="grid grid-cols-1 gap-6 sm:grid-cols-2",
    )


def call_trial() -> rx.Component:
    """Return the wallet to try the call with, and the answer."""
    return rx.el.div(
        field(
            _("Wallet"),
            rx.el.div(
                text_input(
                    WALLET_INPUT,
                    form=CALL_FORM,
                    placeholder=_("Any wallet: 0x..."),
                    value=RuleFormState.trial_wallet,
                    on_change=RuleFormState.enter_trial_wallet,
                    spell_check=False,
                ),
                button(_("Try the call"), icon="play", type="submit", form=CALL_FORM, disabled=RuleFormState.trying),
                class_name="flex gap-2",
            ),
            hint=_("Shows what the function answers for this wallet now. Nothing is stored."),
        ),
        rx.el.p(RuleFormState.tried, class_name="text-sm font-medium", role="status"),
        class_name="flex flex-col gap-3",
    )
