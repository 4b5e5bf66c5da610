"""The form that adds a verification rule."""

import reflex as rx

from components.layout.frame import member_frame, page_head
from components.ui.button import button, link_button, spinner
from components.ui.card import card
from components.ui.field import field, number_input, select_input, text_input
from state.rule_form import ANY_NFT, CONTRACT_INPUT, OFFERED_CHAINS, OFFERED_TYPES, RuleFormState
from state.rules import RoleOptionView, ServerPageState

TYPES = (
    ("basic", "Basic: a number of tokens"),
    ("trait", "Trait: tokens with a trait"),
    ("token_id", "Token ID: certain tokens"),
    ("any_nft", "Any NFT on a chain"),
)
DEBOUNCE_MS = 500
"""How long typing rests before a collection is looked up."""
CHAINS = ("ethereum", "apechain", "polygon", "base", "abstract", "arbitrum", "optimism", "solana")


def rule_form() -> rx.Component:
    """What somebody has to hold, and which role that gives."""
    return member_frame(
        page_head(
            "Add Verification Rule",
            f"For {ServerPageState.name}",
            link_button("Back", ServerPageState.config_url, kind="quiet", icon="arrow-left"),
        ),
        card(
            rx.el.form(
                _kind(),
                _collection(),
                _name(),
                _role(),
                rx.cond(
                    RuleFormState.fault != "",
                    rx.el.p(RuleFormState.fault, class_name="font-medium text-error", role="alert"),
                ),
                rx.el.div(
                    link_button("Cancel", ServerPageState.config_url, kind="quiet"),
                    button(
                        "Create Rule",
                        kind="primary",
                        type="submit",
                        busy=RuleFormState.pending,
                        busy_label="Creating...",
                    ),
                    class_name="flex flex-wrap justify-end gap-3",
                ),
                on_submit=RuleFormState.create,
                class_name="flex flex-col gap-6",
            )
        ),
        narrow=True,
    )


def _option(value: str, label: str, offered: bool) -> rx.Component:
    return rx.el.option(label if offered else f"{label} (not offered yet)", value=value, disabled=not offered)


def _kind() -> rx.Component:
    types = [_option(value, label, value in OFFERED_TYPES) for value, label in TYPES]
    chains = [_option(chain, chain.capitalize(), chain in OFFERED_CHAINS) for chain in CHAINS]
    return rx.el.div(
        field(
            "Rule Type",
            select_input("verificationType", *types, value=RuleFormState.type, on_change=RuleFormState.choose_type),
            name="verificationType",
        ),
        field(
            "Blockchain",
            select_input("blockchain", *chains, value=RuleFormState.chain, on_change=RuleFormState.choose_chain),
            name="blockchain",
        ),
        class_name="grid gap-6 sm:grid-cols-2",
    )


def _collection() -> rx.Component:
    return rx.cond(
        RuleFormState.type != ANY_NFT,
        rx.el.div(
            field(
                "Contract Address or Collection URL",
                rx.el.div(
                    text_input(
                        CONTRACT_INPUT,
                        placeholder="0x... or a collection's page on OpenSea or Magic Eden",
                        default_value=RuleFormState.contract,
                        on_change=RuleFormState.enter_contract.debounce(DEBOUNCE_MS),
                        spell_check=False,
                    ),
                    rx.el.button(
                        rx.cond(RuleFormState.looking, spinner(), rx.icon("refresh-cw", size=18, aria_hidden="true")),
                        type="button",
                        on_click=RuleFormState.refresh_collection,
                        disabled=RuleFormState.looking,
                        aria_label="Refresh collection",
                        aria_busy=RuleFormState.looking,
                        class_name="btn btn-outline btn-square",
                    ),
                    class_name="flex gap-2",
                ),
                name=CONTRACT_INPUT,
                hint=rx.cond(
                    RuleFormState.collection != "",
                    f"{RuleFormState.collection} on {RuleFormState.chain.capitalize()}",
                    "The collection's contract on the chain chosen above, or its page on a marketplace.",
                ),
            ),
            field(
                "Minimum Tokens",
                number_input(
                    "minTokens",
                    min=1,
                    step=1,
                    default_value=RuleFormState.min_tokens,
                    on_change=RuleFormState.enter_min_tokens,
                ),
                name="minTokens",
                hint="Over all wallets of a member.",
            ),
            class_name="grid gap-6 sm:grid-cols-[2fr_1fr]",
        ),
    )


def _name() -> rx.Component:
    return field(
        "Rule Name",
        rx.el.div(
            text_input("ruleName", value=RuleFormState.rule_name, read_only=True, placeholder="Filled in by itself"),
            rx.el.button(
                rx.icon("refresh-cw", size=18, aria_hidden="true"),
                type="button",
                on_click=RuleFormState.refresh_name,
                aria_label="Refresh rule name",
                class_name="btn btn-outline btn-square",
            ),
            class_name="flex gap-2",
        ),
        name="ruleName",
    )


def _role() -> rx.Component:
    return field(
        "Role",
        select_input(
            "roleId",
            rx.el.option(rx.cond(RuleFormState.roles_loaded, "Choose a role", "Loading roles..."), value=""),
            rx.foreach(RuleFormState.roles, _role_option),
            value=RuleFormState.role_id,
            on_change=RuleFormState.choose_role,
        ),
        name="roleId",
        hint="Roles that cannot be given say why.",
    )


def _role_option(role: rx.vars.ObjectVar[RoleOptionView]) -> rx.Component:
    return rx.el.option(role.label, value=role.id, disabled=~role.assignable, key=role.id)
