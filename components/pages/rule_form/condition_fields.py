"""The fields of one condition: its type and chain, the collection, and the fields of that type."""

import operator
from collections.abc import Sequence
from functools import reduce

import reflex as rx
from reflex.vars import FunctionStringVar

from components.pages.rule_form.addresses import addresses
from components.pages.rule_form.call_fields import call_trial, called_contract
from components.ui.badge import chip
from components.ui.button import button, spinner
from components.ui.effects.changed import when_changed
from components.ui.effects.texts import filled
from components.ui.field import (
    field,
    late_hint,
    number_field,
    select_field,
    select_input,
    text_area,
    text_field,
    text_input,
    typed_select,
)
from components.ui.tooltip import tooltip
from locales import _
from state.core.timing import URL_DEBOUNCE_MILLISECONDS
from state.rule_form.condition_draft import (
    AT_LEAST,
    AT_MOST,
    BETWEEN,
    CALLING,
    CHAINLESS,
    CONTRACT_HINTS,
    COUNTING,
    DETAILS,
    EXACTLY,
    LESS,
    LIMITED,
    MORE,
    NOTES,
    OF_COINS,
    OF_COLLECTIONS,
    TYPE_OPTIONS,
    WITH_IDS,
    WITH_TRAITS,
    DetailField,
)
from state.rule_form.condition_fields import CONTRACT_INPUT, FAILED, PENDING, TOKEN_INPUT
from state.rule_form.rule_form import RuleFormState

TYPE_INPUT = "verificationType"
"""The first field of a condition."""
TOKEN_FORM = "token-form"
"""The form of the token id entry: Enter adds an id there instead of submitting the rule."""
_OPEN = RuleFormState.open
"""The condition that the person sees. Each change names it: another may be open when the change arrives."""


def condition_fields() -> rx.Component:
    """Return the fields of the open condition."""
    return rx.el.div(
        _kind(),
        rx.cond(_is_one_of(OF_COLLECTIONS), rx.el.div(_collection(), _offers(), class_name="flex flex-col gap-3")),
        rx.cond(_is_one_of(CALLING), called_contract()),
        rx.cond(_is_one_of(LIMITED), _amounts()),
        rx.cond(_is_one_of(WITH_TRAITS), _trait()),
        rx.cond(_is_one_of(WITH_IDS), _token_ids()),
        *(rx.cond(RuleFormState.type == name, _details(fields)) for name, fields in DETAILS.items()),
        rx.cond(_is_one_of(CALLING), call_trial()),
        *(
            rx.cond(RuleFormState.type == name, rx.el.p(_(text), class_name="text-sm opacity-75", role="note"))
            for name, text in NOTES.items()
        ),
        rx.cond(
            RuleFormState.caveat != "",
            rx.el.p(
                RuleFormState.caveat,
                class_name="rounded-box bg-warning/12 p-4 text-sm font-medium text-warning",
                role="note",
            ),
        ),
        class_name="flex flex-col gap-6",
    )


def _is_one_of(types: Sequence[str]) -> rx.Var[bool]:
    """Return whether the condition is of one of these types, as an expression for the browser."""
    return rx.Var.create(reduce(operator.or_, (RuleFormState.type == one for one in types))).to(bool)


def token_form() -> rx.Component:
    """Return the form of the token id entry, outside the rule's form because forms cannot be nested."""
    # Emptied at once: the next id may be typed before the server has answered about this one.
    return rx.el.form(
        id=TOKEN_FORM, on_submit=RuleFormState.add_tokens(_OPEN), reset_on_submit=True, class_name="hidden"
    )


def _kind() -> rx.Component:
    types = [rx.el.option(_(label), value=value) for value, label in TYPE_OPTIONS]
    return rx.el.div(
        select_field(
            _("Rule Type"), TYPE_INPUT, *types, value=RuleFormState.type, on_change=RuleFormState.choose_type(_OPEN)
        ),
        rx.cond(
            ~_is_one_of(CHAINLESS),
            select_field(
                _("Blockchain"),
                "blockchain",
                rx.foreach(
                    RuleFormState.chains,
                    lambda one: rx.el.option(one.label, value=one.name, disabled=~one.offered, key=one.name),
                ),
                value=RuleFormState.chain,
                on_change=RuleFormState.choose_chain(_OPEN),
            ),
        ),
        class_name="grid grid-cols-1 gap-6 sm:grid-cols-2",
    )


def _replace(name: str, was: str | rx.Var[str], becomes: str | rx.Var[str]) -> rx.event.EventSpec:
    """Put a text into a field unless more was typed than the blanks around `was`."""
    replace = FunctionStringVar.create(
        "((name, was, becomes) => {"
        " const field = document.getElementById(name);"
        " if (was !== becomes && field?.value.trim() === was.trim()) field.value = becomes; })"
    )
    return rx.run_script(replace.call(name, was, becomes))


def _collection() -> rx.Component:
    return rx.el.div(
        field(
            _("Contract Address or Collection URL"),
            rx.el.div(
                text_input(
                    CONTRACT_INPUT,
                    placeholder=rx.cond(
                        _is_one_of(OF_COINS), _("The coin's address, or native"), _("0x... or a collection's URL")
                    ),
                    custom_attrs={"aria-invalid": rx.cond(RuleFormState.contract_fault != "", "true", "false")},
                    default_value=RuleFormState.contract,
                    on_change=lambda value: RuleFormState.enter_contract(_OPEN, value).debounce(
                        URL_DEBOUNCE_MILLISECONDS
                    ),
                    # The field may be left before the pause is over, and another condition opened next.
                    on_blur=lambda value: RuleFormState.enter_contract(_OPEN, value),
                    spell_check=False,
                ),
                # The address that was found replaces the text it was found for.
                when_changed(
                    RuleFormState.contract, _replace(CONTRACT_INPUT, RuleFormState.given, RuleFormState.contract)
                ),
                tooltip(
                    rx.el.button(
                        rx.cond(RuleFormState.looking, spinner(), rx.icon("refresh-cw", size=18, aria_hidden="true")),
                        type="button",
                        on_click=RuleFormState.refresh_collection(_OPEN),
                        disabled=RuleFormState.looking,
                        aria_label=_("Refresh collection"),
                        aria_busy=RuleFormState.looking,
                        class_name="btn btn-outline btn-square",
                    ),
                    _("Look the collection up again"),
                ),
                class_name="flex gap-2",
            ),
            hint=late_hint(
                RuleFormState.collection != "",
                filled(
                    _("{collection} on {chain}"), collection=RuleFormState.collection, chain=RuleFormState.chain_name
                ),
                rx.match(RuleFormState.type, *((name, _(hint)) for name, hint in CONTRACT_HINTS.items()), ""),
                RuleFormState.contract_fault,
            ),
        )
    )


def _amounts() -> rx.Component:
    counts = _is_one_of(COUNTING)
    return rx.el.div(
        rx.cond(
            counts,
            number_field(
                _("Minimum Tokens"),
                "minTokens",
                min=rx.cond(RuleFormState.max_tokens == "", 1, 0),
                step=1,
                default_value=RuleFormState.min_tokens,
                on_change=RuleFormState.enter_min_tokens(_OPEN),
                hint=_("Over all wallets of a member."),
            ),
        ),
        number_field(
            _("Maximum Tokens"),
            "maxTokens",
            min=0,
            step=1,
            default_value=RuleFormState.max_tokens,
            on_change=RuleFormState.enter_max_tokens(_OPEN),
            placeholder=_("No maximum"),
            hint=_("Leave it empty for no limit. Members who hold more do not get the role."),
        ),
        class_name=rx.cond(counts, "grid grid-cols-1 gap-6 sm:grid-cols-2", "grid grid-cols-1 gap-6"),
    )


def _offers() -> rx.Component:
    return rx.cond(
        RuleFormState.offers,
        rx.el.div(
            rx.el.p(_("Is it one of these?"), class_name="text-sm font-semibold"),
            rx.el.ul(
                rx.foreach(
                    RuleFormState.offers,
                    lambda offer: rx.el.li(
                        rx.el.button(
                            offer.label,
                            type="button",
                            on_click=RuleFormState.take_offer(_OPEN, offer.chain, offer.contract),
                            class_name="btn btn-outline btn-sm h-auto min-h-8 max-w-full whitespace-normal py-1.5",
                        ),
                        key=f"{offer.chain}{offer.contract}",
                    ),
                ),
                class_name="flex flex-wrap gap-2",
            ),
            class_name="flex flex-col gap-2",
            role="status",
        ),
    )


def _trait() -> rx.Component:
    return rx.el.div(
        rx.el.div(_trait_type(), _trait_value(), class_name="grid grid-cols-1 gap-6 sm:grid-cols-2"),
        rx.el.div(
            button(_("Add another trait"), icon="plus", on_click=RuleFormState.add_trait(_OPEN), class_name="btn-sm"),
            rx.el.p(
                _(
                    "One token must have all traits of this condition. Use a second condition if different tokens may "
                    "have them."
                ),
                class_name="muted text-sm",
            ),
            class_name="flex flex-wrap items-center gap-3",
        ),
        rx.cond(
            RuleFormState.more_traits,
            rx.el.ul(
                rx.foreach(
                    RuleFormState.more_traits,
                    lambda one: rx.el.li(
                        chip(one.kind + ": " + one.value, RuleFormState.remove_trait(_OPEN, one.kind, one.value)),
                        key=f"{one.kind}:{one.value}",
                    ),
                ),
                class_name="flex flex-wrap gap-2",
                aria_label=_("Traits that the same token must have as well"),
            ),
        ),
        class_name="flex flex-col gap-3",
    )


def _details(fields: Sequence[DetailField]) -> rx.Component:
    """Return the fields that only one type has."""
    if any(one.kind == "upload" for one in fields):
        return addresses()
    return rx.el.div(*map(_detail, fields), class_name="grid grid-cols-1 gap-6 sm:grid-cols-2")


def _detail(one: DetailField) -> rx.Component:
    value, enter = RuleFormState.details[one.name], RuleFormState.enter_detail(_OPEN, one.name)
    if one.kind == "choice":
        options = [rx.el.option(_(label), value=name) for name, label in one.choices]
        entry = select_input(one.name, *options, value=value, on_change=enter)
    elif one.kind == "lines":
        entry = text_area(one.name, value=value, on_change=enter, placeholder=_(one.placeholder), spell_check=False)
    else:
        mode = "decimal" if one.kind == "number" else "text"
        entry = text_input(
            one.name, value=value, on_change=enter, placeholder=_(one.placeholder), input_mode=mode, spell_check=False
        )
    return field(_(one.label), entry, hint=_(one.hint))


def _trait_type() -> rx.Component:
    return rx.cond(
        RuleFormState.trait_types,
        select_field(
            _("Trait Type"),
            "traitType",
            rx.el.option(_("Choose a trait"), value=""),
            rx.foreach(RuleFormState.type_choices, _choice),
            value=RuleFormState.trait_type,
            on_change=RuleFormState.choose_trait_type(_OPEN),
        ),
        text_field(
            _("Trait Type"),
            "traitType",
            value=RuleFormState.trait_type,
            on_change=RuleFormState.choose_trait_type(_OPEN),
            placeholder=_("Fur"),
            spell_check=False,
            hint=rx.match(
                RuleFormState.types_state,
                (PENDING, _("Looking up this collection's traits…")),
                (
                    FAILED,
                    _(
                        "The API could not fetch this collection's traits. Type the trait's name as the collection "
                        "spells it."
                    ),
                ),
                _("Known traits are offered here once the collection is found."),
            ),
        ),
    )


def _trait_value() -> rx.Component:
    return rx.cond(
        RuleFormState.trait_values,
        field(
            _("Trait Value"),
            rx.el.div(
                rx.cond(RuleFormState.numeric, _compare()),
                rx.cond(
                    RuleFormState.numeric & (RuleFormState.trait_compare != EXACTLY),
                    _typed_value(),
                    select_input(
                        "traitValue",
                        rx.el.option(_("Choose a value"), value=""),
                        rx.foreach(RuleFormState.value_choices, _choice),
                        value=RuleFormState.trait_value,
                        on_change=RuleFormState.enter_trait_value(_OPEN),
                    ),
                ),
                class_name="flex gap-2",
            ),
        ),
        field(
            _("Trait Value"),
            rx.el.div(_compare(), _typed_value(), class_name="flex gap-2"),
            hint=rx.match(
                RuleFormState.values_state,
                (PENDING, _("Looking up the values…")),
                (FAILED, _("The API could not fetch this trait's values. Type the value as the collection spells it.")),
                rx.cond(
                    (rx.Var.create(RuleFormState.trait_types).length() > 0) & (RuleFormState.trait_type == ""),
                    _("Choose the trait first."),
                    _("A text, or a number to compare with."),
                ),
            ),
        ),
    )


def _compare() -> rx.Component:
    return rx.el.div(
        typed_select(
            rx.el.option(_("exactly"), value=EXACTLY),
            rx.el.option(_("at least"), value=AT_LEAST),
            rx.el.option(_("at most"), value=AT_MOST),
            rx.el.option(_("more than"), value=MORE),
            rx.el.option(_("less than"), value=LESS),
            rx.el.option(_("between"), value=BETWEEN),
            value=RuleFormState.trait_compare,
            on_change=RuleFormState.choose_compare(_OPEN),
            aria_label=_("How the value is meant"),
            class_name="select",
        ),
        class_name="w-28 shrink-0",
    )


def _typed_value() -> rx.Component:
    return text_input(
        "traitValue",
        value=RuleFormState.trait_value,
        on_change=RuleFormState.enter_trait_value(_OPEN),
        placeholder=rx.match(RuleFormState.trait_compare, (EXACTLY, _("Gold")), (BETWEEN, "5..10"), "10"),
        spell_check=False,
    )


def _choice(value: rx.Var[str]) -> rx.Component:
    return rx.el.option(value, value=value, key=value)


def _settle_entry() -> rx.event.EventSpec:
    """Empty the field of an entry that was added, or put a refused one back; text typed meanwhile stays."""
    entry, refused = RuleFormState.token_entry, RuleFormState.token_fault != ""
    return _replace(TOKEN_INPUT, rx.cond(refused, "", entry), rx.cond(refused, entry, ""))


def _token_ids() -> rx.Component:
    solana = RuleFormState.chain == "solana"
    return rx.el.div(
        field(
            _("Token IDs"),
            rx.el.div(
                text_input(
                    TOKEN_INPUT,
                    form=TOKEN_FORM,
                    on_blur=lambda value: RuleFormState.leave_tokens(_OPEN, value),
                    placeholder=rx.cond(solana, _("The token's mint address"), "42, or 100-200, or 1, 2, 3"),
                ),
                when_changed(rx.Var.create(RuleFormState.token_entries).to_string(), _settle_entry()),
                button(_("Add"), icon="plus", type="submit", form=TOKEN_FORM),
                class_name="flex gap-2",
            ),
            hint=rx.fragment(
                rx.cond(_is_one_of(COUNTING), _("The minimum counts these alone."), _("Any one of them is enough.")),
                rx.cond(solana, "", rx.fragment(" ", _("A range like 100-200 includes both ends."))),
            ),
            error=RuleFormState.token_fault,
        ),
        rx.cond(
            RuleFormState.token_ids,
            rx.el.ul(
                rx.foreach(
                    RuleFormState.token_ids,
                    lambda entry: rx.el.li(chip(entry, RuleFormState.remove_token(_OPEN, entry)), key=entry),
                ),
                class_name="flex flex-wrap gap-2",
                aria_label=_("Chosen so far"),
            ),
        ),
        class_name="flex flex-col gap-3",
    )
