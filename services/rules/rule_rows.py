"""Map between rules' rows and drafts, and apply changes to rows."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from gateways.discord.types import Role
from locales import N_, _
from models import Rule, now
from services.core.discord_text import color_hex
from services.core.errors import FieldRefused
from services.guilds.permissions import Rights
from services.guilds.role_safety import find, refusal, taking_refusal
from services.rules.draft import RuleDraft, check, expression_of, parsed
from services.rules.expression import Expression, Requirement, requirements, to_document
from services.rules.pausing import TOO_MANY
from services.rules.types.registry import DETAIL_FIELDS

STATES = ("active", "paused", "shadow")

_CONDITION = {
    "contractAddress": "contract_address", "blockchain": "blockchain", "verificationType": "verification_type",
    "minTokens": "min_tokens", "traitType": "trait_type", "traitValue": "trait_value", "tokenIds": "token_ids",
    "maxTokens": "max_tokens",
}  # fmt: skip
_FIELDS = {
    **_CONDITION, "ruleName": "rule_name", "roleId": "role_id", "roleColor": "role_color", "expression": "expression",
    "takesOver": "takes_over", "delegated": "delegated",
}  # fmt: skip


def new_row(draft: RuleDraft, found: Rights, created_by: str) -> Rule:
    """Return the row of a draft, checked and in no session. Raises FieldRefused, Conflict."""
    rule = Rule(
        server_id=draft.server_id, name="", role_id="", role_name="", verification_type="", contract_address="",
        blockchain="", created_by=created_by, state="shadow" if draft.shadow else "active",
    )  # fmt: skip
    fill(rule, draft, found)
    return rule


def fill(rule: Rule, draft: RuleDraft, found: Rights) -> None:
    """Check a draft and write it to the row, with the role's present name and colour from Discord.

    Raises FieldRefused (also for a role that cannot be granted), Conflict when the bot is not in the server.
    """
    draft = check(draft)
    tree = expression_of(draft)
    role = grantable(found, draft.role_id, "roleId")
    rule.name = draft.rule_name
    rule.role_id, rule.role_name = role.id, role.name
    rule.role_color = draft.role_color or color_hex(role.color)
    set_expression(rule, tree)
    rule.removal_mode, rule.removal_hours = draft.removal_mode, draft.removal_hours
    rule.takes_over, rule.delegated = draft.takes_over, draft.delegated


def grantable(found: Rights, role_id: str, field: str) -> Role:
    """Return a role that a rule may give. Raises FieldRefused for any other role, Conflict as `fill` does."""
    guild, person, bot = found.guild_with_bot()
    role = find(guild.roles, role_id)
    if role is None:
        raise FieldRefused(field, _("This role does not exist in the server (any more). Choose another one."))
    if reason := refusal(role, guild.id, bot, person):
        raise FieldRefused(field, reason)
    return role


def set_expression(rule: Rule, tree: Expression) -> None:
    """Write an expression to the row, with the flat fields that repeat its first condition."""
    first = next(requirements(tree))
    rule.verification_type, rule.blockchain, rule.contract_address = first.type, first.chain, first.contract
    rule.min_tokens, rule.token_ids = first.min_tokens, list(first.token_ids)
    rule.trait_type, rule.trait_value = first.traits[0] if first.traits else (None, None)
    rule.expression = to_document(tree)
    rule.updated_at = now()


def apply(rule: Rule, changes: Mapping[str, Any], found: Rights) -> None:
    """Change fields of a row (named as in the payload) and its state. Raises FieldRefused, Conflict.

    A rule that becomes active or shadow is checked again even if nothing else changes. Without a `state`, `shadow` puts
    a rule in shadow, or makes a rule in shadow active if it is false. Another role means that members lose the present
    one, so a person may not change the role of a rule whose present role is not below their own.
    """
    fields = dict(changes)
    shadow = fields.pop("shadow", None)
    if shadow or (shadow is False and rule.state == "shadow"):
        fields.setdefault("state", "shadow" if shadow else "active")
    names_state = "state" in fields
    state = fields.pop("state", rule.state)
    if state not in STATES:
        raise FieldRefused("state", _("A rule's state is one of {states}.").format(states=", ".join(STATES)))
    if fields.get("roleId", rule.role_id) != rule.role_id and (reason := taking_refused(found, rule.role_id)):
        raise FieldRefused("roleId", reason)
    if fields or (state != "paused" and state != rule.state):
        fill(rule, _changed(_draft_of(rule), fields), found)
    if fields and rule.pause_cause not in {None, TOO_MANY} and not names_state:
        # The check has just shown that the cause of the automatic pause is gone, so the rule resumes. It does not
        # count the server's rules: one beyond the limits would resume until housekeeping pauses it again.
        state = "active"
    if names_state or state != rule.state:
        rule.pause_reason = N_("Paused by an admin") if state == "paused" else None
        rule.pause_cause, rule.paused_at = None, now() if state == "paused" else None
    rule.state, rule.updated_at = state, now()


def taking_refused(found: Rights, role_id: str) -> str | None:
    """Return why the person may do nothing by which members lose this role, or None. Without the bot nobody does."""
    if found.guild is None or found.person is None:
        return None
    return taking_refusal(found.guild.roles, role_id, found.person)


def copy_of(rule: Rule) -> Rule:
    """Return a copy of the row in no session: changes to it are not written."""
    return Rule(**rule.model_dump())


def _draft_of(rule: Rule) -> RuleDraft:
    """Return a stored rule as a draft. Raises FieldRefused for one that this version cannot read."""
    # Of what a newer version wrote, the flat fields say only half of what the rule asks for.
    tree = parsed(rule.expression)
    simple = isinstance(tree, Requirement)
    first = next(requirements(tree))
    return RuleDraft(
        rule_name=rule.name, contract_address=rule.contract_address, blockchain=rule.blockchain,
        verification_type=rule.verification_type, role_id=rule.role_id, server_id=rule.server_id,
        min_tokens=rule.min_tokens, role_color=rule.role_color, trait_type=rule.trait_type,
        trait_value=rule.trait_value, token_ids=tuple(rule.token_ids),
        expression=None if simple else rule.expression, removal_mode=rule.removal_mode,
        removal_hours=rule.removal_hours, takes_over=rule.takes_over, delegated=rule.delegated,
        max_tokens=first.max_tokens, more_traits=first.traits[1:],
        details=first.details.document() if first.details is not None else {},
    )  # fmt: skip


def _changed(draft: RuleDraft, fields: Mapping[str, Any]) -> RuleDraft:
    if draft.expression is not None and fields.get("expression") is None:
        fields = _without_conditions(draft, fields)
    values = {ours: fields[theirs] for theirs, ours in _FIELDS.items() if theirs in fields}
    if values.get("expression") is None:
        values.pop("expression", None)
    if "role_id" in values and not values.get("role_color"):
        # If no colour is given, the new role's own colour is used.
        values["role_color"] = None
    if "token_ids" in values:
        values["token_ids"] = tuple(values["token_ids"] or ())
    if traits := cast("Sequence[tuple[str, str]]", fields.get("traits") or ()):
        values["trait_type"], values["trait_value"] = traits[0]
        values["more_traits"] = tuple(traits[1:])
    elif values.keys() & {"trait_type", "trait_value"}:
        values["more_traits"] = ()
    of_condition = {*_CONDITION.values(), "more_traits", "details"}
    given = {name: fields[name] for name in DETAIL_FIELDS if name in fields}
    if given or values.keys() & of_condition:
        # Stored facts about the former condition, such as decimals, are dropped and read again.
        kept = {name: draft.details[name] for name in DETAIL_FIELDS if name in draft.details}
        values["details"] = {name: value for name, value in (kept | given).items() if value is not None}
    if isinstance(fields.get("removal"), Mapping):
        removal = cast("Mapping[str, Any]", fields["removal"])
        hours = removal.get("hours")
        # Hours alone change a grace time. They are no removal at once, so without a grace time they are refused.
        usual = "" if hours and draft.removal_mode == "now" else draft.removal_mode
        values["removal_mode"] = mode = removal.get("mode", usual)
        if hours is None:
            # Without a number nobody knows how many: the present ones, or a refusal instead of a removal at once.
            hours = (draft.removal_hours or None) if mode == "grace" else 0
        values["removal_hours"] = hours
    return replace(draft, **values)


def _without_conditions(draft: RuleDraft, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return changes of a combined rule without its flat fields, which only repeat the first condition.

    Raises FieldRefused if one of them differs, because a single condition does not say whether the others stay.
    """
    first = {theirs: getattr(draft, ours) for theirs, ours in _CONDITION.items()} | dict(draft.details)
    first["traits"] = ((draft.trait_type, draft.trait_value), *draft.more_traits)
    names = {*_CONDITION, "traits", *DETAIL_FIELDS}
    for name in (one for one in fields if one in names):
        if (given := _given(fields[name])) is not None and given != _given(first.get(name)):
            message = _(
                "The conditions of this rule are combined. Open the rule again to change them; programs send all of "
                "them as `expression`."
            )
            raise FieldRefused(name, message)
    return {name: value for name, value in fields.items() if name not in names}


def _given(value: Any) -> object:
    """Return the value of a flat field in a form that can be compared, or None if there is none."""
    if isinstance(value, list | tuple):
        return tuple(map(_given, cast("Sequence[Any]", value))) or None
    if isinstance(value, str):
        text = value.strip()
        return (text.lower() if text[:2] in {"0x", "0X"} else text) or None
    return value


def document(rule: Rule) -> dict[str, Any]:
    """Return a rule in the form that the log stores."""
    return {
        "name": rule.name, "roleId": rule.role_id, "roleName": rule.role_name, "roleColor": rule.role_color,
        "expression": rule.expression, "removal": {"mode": rule.removal_mode, "hours": rule.removal_hours},
        "state": rule.state, "takesOver": rule.takes_over, "delegated": rule.delegated,
    }  # fmt: skip


def newest_role_name(row: str) -> str:
    """Return the SQL expression for a role's name as its newest rule has it; null without a rule.

    `row` names a row with the columns `server_id` and `role_id`.
    """
    return f"""(SELECT r.role_name FROM rule r WHERE r.server_id = {row}.server_id AND r.role_id = {row}.role_id
        ORDER BY r.id DESC LIMIT 1)"""
