"""Verification rules: create, read, change and delete them, for people who run their server."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Annotated, Any, cast

from fastapi import Header, Query
from pydantic import AfterValidator, ConfigDict, Field, model_validator
from pydantic.json_schema import SkipJsonSchema

from app.api.requests.caller import Caller
from app.api.requests.examples import ONLY_FOR
from app.api.requests.routers import calls
from app.api.requests.shapes import ApiAnswer, Done, InternalId, Loose, PathId, Payload, QueryId
from app.api.server.moves import MovePreview
from gateways import gateways
from models import transaction
from services.collections.census import reach
from services.collections.census.reach import ReachView
from services.core.discord_text import DEFAULT_COLOR
from services.engine.previews import preview
from services.engine.previews import try_address as address_trial
from services.engine.previews.plan import plan
from services.engine.previews.proposals import Activation, NewRule, OneRule, Proposal, RuleChange, RuleDeletion
from services.engine.previews.try_address import Trial
from services.holdings import try_call
from services.holdings.try_call import CallResult, CallTrial
from services.rules import rules
from services.rules.expression import MOST_TRAITS
from services.rules.rules import Request, RuleDraft, RuleView
from services.rules.single_source import SingleSource
from services.rules.types.registry import DETAIL_FIELDS, RULE_TYPES
from services.rules.types.view_call import WALLET

router = calls("/verification-rules", tags=["rules"])


class RuleRemoval(Payload):
    """When a member loses a role that no rule gives any more: `now`, or after some `hours` of `grace`."""

    mode: str = "now"
    hours: Any = None


class TraitPayload(Payload):
    """A trait that a token must have."""

    type: Loose = ""
    value: Loose = ""


_LIST: list[dict[str, Any]] = [{"type": "array", "items": {}}]
_SENT: dict[str, list[dict[str, Any]]] = {
    "lines": _LIST, "upload": _LIST, "hidden": [{"type": "string"}, {"type": "integer"}],
}  # fmt: skip
"""The JSON of a field by its kind; of any other kind it is a text."""


def _describe_details(schema: dict[str, Any]) -> None:
    """Add the fields of single types to the description of a condition."""
    for name, kind in RULE_TYPES.items():
        for one in kind.fields:
            sent = _SENT.get(one.kind, [{"type": "string"}])
            described = {"anyOf": [*sent, {"type": "null"}], "description": ONLY_FOR.format(name=name)}
            schema["properties"].setdefault(one.name, described)


class ConditionPayload(Payload):
    """One condition as flat fields; `details` collects those of its type alone, which are sent beside the others."""

    model_config = ConfigDict(json_schema_extra=_describe_details)

    max_tokens: Any = None
    traits: list[TraitPayload] | None = Field(default=None, max_length=MOST_TRAITS)
    details: SkipJsonSchema[dict[str, Any]] = Field(default_factory=dict[str, Any])

    @model_validator(mode="before")
    @classmethod
    def _collect_details(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        sent = {str(name): value for name, value in cast("Mapping[object, Any]", data).items() if name != "details"}
        details = {name: sent[name] for name in DETAIL_FIELDS if name in sent}
        return {**sent, "details": details} if details else sent


class RuleFields(ConditionPayload):
    """The fields of a rule that can be chosen."""

    rule_name: Loose = ""
    contract_address: Loose = ""
    blockchain: Loose = ""
    verification_type: Loose = ""
    min_tokens: Any = 1
    role_id: Loose = ""
    role_color: str | None = None
    trait_type: str | None = None
    trait_value: str | None = None
    token_ids: list[str] | None = None
    role_name: str | None = None
    expression: dict[str, Any] | None = None
    removal: RuleRemoval = RuleRemoval()
    shadow: bool = False
    takes_over: bool = False
    delegated: bool = False


class RulePayload(RuleFields):
    """A new rule; its `state` is `active`, the default, or `shadow`, for which there is also the field `shadow`.

    The service reports missing and wrong fields, in the order of the form.
    """

    verification_type: Annotated[Loose, AfterValidator(lambda given: given or "basic")] = "basic"
    server_id: InternalId
    state: Loose = ""


class RuleChanges(RuleFields):
    """Changes to a rule; fields that are left out stay as they are, also if somebody else has changed them meanwhile.

    The flat fields of a condition change a rule that has only one. The conditions of a combined rule are changed by its
    `expression`, which replaces all of them; flat fields that differ from its first condition are refused.
    """

    state: str = ""


class PreviewPayload(RulePayload):
    """A proposal: a new rule or, with `id`, a change to that rule, its new `state`, or its deletion.

    `activate` lists ids of rules in shadow in the server `serverId`, to preview what they would do if all were active.
    """

    server_id: InternalId = 0
    id: InternalId | None = None
    delete: bool = False
    activate: list[InternalId] | None = Field(default=None, min_length=1, max_length=1_000)


class TrialPayload(PreviewPayload):
    """A rule as for a preview, but with optional name and role, and the address or name of a wallet."""

    address: Loose = ""


class PreviewAnswer(MovePreview):
    """How many members would gain, keep or lose the role or are unknown, and their names.

    `looked` of `concerned` members were read; in a large server these are the holders of the role and a sample of the
    rest. `members` is empty if fewer than five would have the role and a condition on single tokens, traits, addresses
    or a function could tell whose wallet is whose.
    """

    single_sources: tuple[SingleSource, ...]


class CallTrialPayload(Payload):
    """A view call and the wallet to ask about. The service reports missing and wrong fields."""

    chain: Loose = ""
    contract: Loose = ""
    function: Loose = ""
    args: list[Any] = Field(default_factory=lambda: [WALLET], max_length=40)
    path: Loose = ""
    wallet: Loose = ""


class ReachAnswer(ApiAnswer):
    """A count that has begun; its id is for `GET /api/verification-rules/reach/{id}`."""

    id: int


IdempotencyKey = Annotated[
    str | None, Header(alias="Idempotency-Key", min_length=1, max_length=255, pattern="^[ -~]+$")
]
"""A program's own name for a request, with which it can be repeated (draft-ietf-httpapi-idempotency-key-header)."""


class DeletedAnswer(Done):
    """The rule is deleted; the roles of `members` people are decided again now."""

    members: int


def _draft(payload: RulePayload) -> RuleDraft:
    removal = payload.removal
    # Hours alone are no removal at once: the service refuses them without their mode.
    mode = removal.mode if "mode" in removal.model_fields_set or not removal.hours else ""
    hours = 0 if removal.hours is None and mode == "now" else removal.hours
    traits = [(one.type, one.value) for one in payload.traits or ()]
    trait_type, trait_value = traits[0] if traits else (payload.trait_type, payload.trait_value)
    return RuleDraft(
        rule_name=payload.rule_name,
        contract_address=payload.contract_address,
        blockchain=payload.blockchain,
        verification_type=payload.verification_type,
        min_tokens=payload.min_tokens,
        role_id=payload.role_id,
        role_color=payload.role_color or DEFAULT_COLOR,
        trait_type=trait_type,
        trait_value=trait_value,
        token_ids=tuple(payload.token_ids or ()),
        server_id=payload.server_id,
        expression=payload.expression,
        removal_mode=mode,
        removal_hours=hours,
        max_tokens=payload.max_tokens,
        more_traits=tuple(traits[1:]),
        details=payload.details,
        shadow=payload.shadow or payload.state == "shadow",
        state=payload.state,
        takes_over=payload.takes_over,
        delegated=payload.delegated,
    )


def _changes(payload: RuleChanges | PreviewPayload) -> dict[str, Any]:
    """Return the fields that were sent, by their names in the JSON."""
    changes = payload.model_dump(
        by_alias=True, exclude_unset=True, exclude={"id", "delete", "server_id", "address", "activate"}
    )
    changes |= changes.pop("details", {})
    if payload.traits is not None:
        changes["traits"] = [(one.type, one.value) for one in payload.traits]
    return changes


@router.get("")
async def list_rules(caller: Caller, server_id: Annotated[QueryId, Query(alias="serverId")]) -> list[RuleView]:
    """Return the rules of a server, by its internal id."""
    async with transaction() as db:
        return await rules.list_rules(db, gateways(), caller, server_id)


@router.post("", status_code=201)
async def create_rule(caller: Caller, payload: RulePayload, idempotency_key: IdempotencyKey = None) -> RuleView:
    """Create a rule; it takes effect at once unless it is in `shadow`.

    A repeated request with the same `Idempotency-Key` creates no second rule, and answers with the first as it is now.
    """
    async with transaction() as db:
        return await rules.create(db, gateways(), caller, _draft(payload), _request(payload, idempotency_key))


def _request(payload: RulePayload, key: str | None) -> Request | None:
    if key is None:
        return None
    return Request(key, sha256(payload.model_dump_json(exclude_unset=True).encode()).digest())


@router.post("/preview")
async def preview_rule(caller: Caller, payload: PreviewPayload) -> PreviewAnswer:
    """Return what creating a rule, or changing or deleting one (by its `id`), would do to members; stores no rule."""
    async with transaction() as db:
        planned = await plan(db, gateways(), caller, _proposal(payload))
    return PreviewAnswer.of(await preview.whole(gateways(), planned), single_sources=planned.single_sources)


@router.post("/try")
async def try_rule(caller: Caller, payload: TrialPayload) -> Trial:
    """Return what a new rule, or the stored one of `id`, says about a member with this wallet alone; stores nothing."""
    async with transaction() as db:
        planned = await address_trial.plan(db, gateways(), caller, _one_rule(payload), payload.address)
    return await address_trial.run(gateways(), planned)


@router.post("/try-call")
async def try_view_call(caller: Caller, payload: CallTrialPayload) -> CallResult:
    """Return what a contract's view function answers about a wallet now, or why it does not; stores nothing."""
    async with transaction() as db:
        await try_call.allow(db, gateways(), caller)
    asked = CallTrial(payload.chain, payload.contract, payload.function, payload.args, payload.path, payload.wallet)
    return await try_call.run(gateways(), asked)


@router.post("/reach", status_code=202)
async def count_reach(caller: Caller, payload: PreviewPayload) -> ReachAnswer:
    """Start to count, on chain, the addresses that meet a new rule or the stored one of `id`; needs no name or role.

    The same conditions are counted at most once an hour.
    """
    async with transaction() as db:
        return ReachAnswer(id=await reach.begin(db, gateways(), caller, _one_rule(payload)))


@router.get("/reach/{reach_id}")
async def get_reach(caller: Caller, reach_id: PathId) -> ReachView:
    """Return how many addresses meet a rule and how many are verified in its server, or how far the count is."""
    async with transaction() as db:
        return await reach.get(db, gateways(), caller, reach_id)


def _proposal(payload: PreviewPayload) -> Proposal:
    if payload.activate is not None:
        return Activation(payload.server_id, tuple(payload.activate))
    if payload.id is not None and payload.delete:
        return RuleDeletion(payload.id)
    return _one_rule(payload)


def _one_rule(payload: PreviewPayload) -> OneRule:
    return NewRule(_draft(payload)) if payload.id is None else RuleChange(payload.id, _changes(payload))


class ActivationPayload(Payload):
    """Rules in shadow of one server, by their ids."""

    server_id: InternalId
    rule_ids: list[InternalId] = Field(min_length=1, max_length=1_000)


class ActivationAnswer(ApiAnswer):
    """How many rules became active; a rule that was no longer in shadow stays as it was."""

    activated: int


@router.post("/activate")
async def activate_rules(caller: Caller, payload: ActivationPayload) -> ActivationAnswer:
    """Activate rules in shadow of one server, all of them or none."""
    async with transaction() as db:
        count = await rules.activate_all(db, gateways(), caller, payload.server_id, payload.rule_ids)
    return ActivationAnswer(activated=count)


@router.get("/{rule_id}")
async def get_rule(caller: Caller, rule_id: PathId) -> RuleView:
    """Return one rule."""
    async with transaction() as db:
        return await rules.get(db, gateways(), caller, rule_id)


@router.patch("/{rule_id}")
async def change_rule(caller: Caller, rule_id: PathId, payload: RuleChanges) -> RuleView:
    """Change fields of a rule, or its state: `active`, `paused` or `shadow`."""
    async with transaction() as db:
        return await rules.change(db, gateways(), caller, rule_id, _changes(payload))


@router.delete("/{rule_id}")
async def delete_rule(caller: Caller, rule_id: PathId) -> DeletedAnswer:
    """Delete a rule; roles that members held only because of it follow its removal policy."""
    async with transaction() as db:
        return DeletedAnswer(members=await rules.delete(db, gateways(), caller, rule_id))
