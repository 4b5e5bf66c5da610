"""The examples and the remarks in the OpenAPI document, which programmers read; examples have one value per field."""

from collections.abc import Mapping
from typing import Any

from app.api.requests.scopes import OPEN

Schema = Mapping[str, Any]
CONTRACT, NEW_CONTRACT = "0x2f1c9b7a4d3e5f60718293a4b5c6d7e8f9012345", "0x7a4d3e5f60718293a4b5c6d7e8f90123452f1c9b"
SHORT = "0x5aae...eaed"
ROLE, MEMBER = "8130000000000000301", "8130000000000000117"
MOMENT, DAY, BATCH = "2026-05-03T08:00:00Z", "2026-05-03", "6f9a1d3e-52c7-4b0e-9a58-d1c34e7b2f60"
LEAF: Mapping[str, Any] = {"type": "basic", "chain": "base", "contract": CONTRACT, "minTokens": 1}
RULE: Mapping[str, Any] = {
    "ruleName": "Cat holders", "blockchain": "base", "contractAddress": CONTRACT, "verificationType": "basic",
    "minTokens": 1, "roleId": ROLE, "roleName": "Holder",
}  # fmt: skip

ONLY_FOR = "Only for the type `{name}`."
"""The remark at a field of a single type of rule."""
PERIOD = "A time, in UTC unless it has a zone, or a date alone for the whole day. A `+` in it is written `%2B`."
"""The remark at the fields `since` and `until` of a query."""
SIGNATURE = (
    "`t=…,v1=…`: the time in seconds, and the hex HMAC-SHA256 of `t`, a dot and the body under the secret. For a day "
    "after a new secret was made there is a `v1` for each of the two."
)
NOT_SIGNED = "The body's `{field}`; this header is not signed."
ACCEPTED, POSTED_AGAIN = (
    "The event is accepted, as by any 2xx.",
    "The event is posted again, with growing pauses, for a day.",
)
"""The remarks at the headers of a posted event, and at the answers of its receiver."""
NOT_READY: Mapping[str, Any] = {
    "description": "It is not ready, or the database does not answer; `Retry-After` says when to ask again."
}
"""The answer 503 of the calls about the state of the service."""

PAYLOADS: Mapping[str, Any] = {
    "RulePayload": {"serverId": 12, **RULE},
    "RuleChanges": {"state": "paused"},
    "PreviewPayload": {"serverId": 12, **RULE},
    "TrialPayload": {"serverId": 12, **RULE, "address": "0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed"},
    "ActivationPayload": {"serverId": 12, "ruleIds": [7, 8]},
    "CallTrialPayload": {
        "chain": "base", "contract": CONTRACT, "function": "stakedOf(address) view returns (uint256)",
        "args": ["{wallet}"], "wallet": "0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed",
    },
    "CollectionPayload": {"input": "https://opensea.io/collection/cats", "blockchain": "base"},
    "MigrationPayload": {
        "chain": "base", "contract": CONTRACT, "newChain": "base", "newContract": NEW_CONTRACT, "sameIds": True,
        "both": True, "until": DAY, "apply": False,
    },
    "RoleReplacementPayload": {"oldRole": ROLE, "newRole": "8130000000000000302", "apply": False},
    "MovePayload": {"until": "2026-06-03", "roles": [ROLE], "channelId": "8130000000000000205"},
    "SeenMovePayload": {
        "roles": [ROLE], "beginsAt": "2026-05-20T09:00:00Z", "until": "2026-06-03T23:59:59Z", "channelId": None,
    },
    "BreakerPayload": {"approve": False, "roleId": ROLE, "seen": {"trippedAt": MOMENT, "total": 6}},
    "ProtectionPayload": {"protected": True},
    "FollowAgainPayload": {"roleId": ROLE, "discordId": MEMBER},
    "ImportPayload": {"source": "holdfast", "document": {"format": "holdfast-rules", "version": 1, "rules": []}},
    "NewTokenPayload": {"name": "nightly report", "scopes": ["read", "members"]},
    "WebhookPayload": {"url": "https://hooks.example.org/holdfast", "events": ["role.given", "role.taken"]},
}  # fmt: skip
"""Examples of what programs send, by the schema's name."""

VALUES: Mapping[str, Any] = {
    "actor": "8130000000000000101", "actorId": "8130000000000000109", "actorName": "ada", "address": None,
    "addresses": ["0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed"], "after": "At least 1 token of Cats on ApeChain",
    "age": 2, "answers": "ok", "avatarUrl": "https://cdn.discordapp.com/avatars/8130000000000000117/a1b2c3.png",
    "backAt": None, "batch": BATCH, "before": "At least 1 token of Cats on Base", "behind": 1, "block": 30120455,
    "blockchain": "base", "by": "ada", "cause": "ada changed the rule “Cat holders”", "chain": "base",
    "channelId": "8130000000000000205", "color": 3908957, "contract": CONTRACT, "contractAddress": CONTRACT,
    "data": {"ruleIds": [7]}, "depth": 0, "discordId": MEMBER, "download": "/api/servers/12/address-lists/9f2c",
    "error": None, "exportedAt": MOMENT, "expression": LEAF, "format": "holdfast-rules", "held": 2, "hours": 24,
    "iconUrl": "https://cdn.discordapp.com/icons/8130000000000000001/d4e5f6.png", "id": 7, "internalId": 12,
    "kind": "role.given", "list": "9f2c", "maxTokens": None,
    "mend": "Move the bot's role above the roles that it gives.",
    "message": "It is queued.", "minTokens": 1, "mode": "grace", "most": None, "name": "carol", "needed": 1,
    "newChain": "apechain", "newContract": NEW_CONTRACT, "newName": "Cat holder", "next": "keeps it", "notes": [],
    "oldName": "Holder", "outcome": "yes", "page": 1, "pageSize": 50, "pauseReason": None, "payload": RULE,
    "progress": 0.4, "provider": "rpc:base", "reason": None, "remedy": "ALCHEMY_API_KEY", "requestId": "9c1f70b2",
    "roleColor": "#3BA55D", "roleId": ROLE, "roleName": "Holder", "ruleId": 7, "ruleName": "Cat holders",
    "secret": "whsec_9wYb…", "serverId": 12, "source": "balance", "state": "good", "subject": MEMBER,
    "subjectName": "carol", "summary": "At least 1 token of Cats on Base", "text": "The bot has every permission.",
    "tokenIds": None, "traitType": None, "traitTypes": ["Fur", "Hat"], "traitValue": None,
    "traitValues": ["Black", "Ginger"], "undoable": True, "use": "proof", "value": "3", "verificationType": "basic",
    "version": 1, "verifiedHere": 12, "wallet": SHORT, "wallets": [SHORT], "warning": "", "what": "Rule 3",
    "why": "Its role is not in this server.", "createdBy": "ada", "prefix": "hf_9wYb2", "token": "hf_9wYb2…",
    "scopes": ["read", "members"], "event": "role.given", "events": ["role.given", "role.taken"], "fault": None,
    "url": "https://hooks.example.org/holdfast", "change": "paused", "family": "evm", "method": "opensea_bio",
    "ruleIds": [7], "guildId": "8130000000000000001", "failingSince": None, "formerSecretUntil": None,
    "gaveUpAt": None, "nextAt": None, "attempts": 1, "ApiTokenView.state": "active", "NewTokenAnswer.state": "active",
    "DeliveryView.state": "delivered", "DeliveryView.id": BATCH, "ApiTokenView.name": "nightly report",
    "NewTokenAnswer.name": "nightly report", "RuleView.tokenIds": [], "success": True,
    "CollectionView.name": "Cats", "ImportedRule.name": "Cat holders", "LeftRule.name": "Whales", "LogLine.id": 48211,
    "LogLine.text": "carol got Holder.", "Line.text": "At least 1 token of Cats on Base",
    "MigratedRule.name": "Cat holders",
    "MemberImpact.outcome": "gain", "MissingPermission.name": "Manage Roles",
    "MoveUndone.text": "3 members get roles back.",
    "MoveView.state": "running", "MoveRival.name": "Another bot", "RivalHealth.name": "Another bot",
    "PausedRule.name": "Cat holders", "PausedRule.reason": "The role was deleted in Discord.",
    "PausedRule.state": "paused", "MigratedRule.state": "active", "RuleOfRole.state": "active",
    "RuleView.state": "active",
    "ExportedRule.state": "active", "RuleOfRole.name": "Cat holders", "RuleWhy.name": "Cat holders",
    "RuleWhy.state": "active", "RunningMigration.name": "Cats", "RunningMigration.rules": ["Cat holders"],
    "ReachView.state": "counting", "RoleProblem.cause": "The role is above the bot's own.", "RoleView.id": ROLE,
    "RoleView.name": "Holder", "ServerView.id": "8130000000000000001", "ServerView.name": "Base Builders",
    "Trial.address": "0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed", "Trial.name": None, "CallResult.source": "latest",
    "TraitPayload.type": "Fur", "UndoView.text": "carol gets Holder back.", "ProviderHealth.kind": "chain",
    "ProviderHealth.name": "Base", "QuotaHealth.name": "OpenSea", "QuotaShare.name": "Proofs",
    "AlertsHealth.channelId": None, "UnknownReading.reason": "No node of Base answers.", "Loser.reason": "0 of 1 token",
    "ProblemAnswer.message": "Server not found", "ServerExportAnswer.format": "holdfast-rules",
    "RoleGivenEvent.id": BATCH, "RoleTakenEvent.id": BATCH, "WalletProvedEvent.id": BATCH, "RuleChangedEvent.id": BATCH,
    "BreakerTrippedEvent.id": BATCH, "SentTestEvent.id": BATCH,
    "SingleSource.text": "Only OpenSea tells the traits of this collection.",
}  # fmt: skip
"""Values by field, or by field of one schema. A text needs one; without one a boolean is false and a number is 3."""

NO_VALUE = "?"
"""The example of a text that has no value here."""
_OF_TYPE: Mapping[str, Any] = {
    "string": NO_VALUE,
    "boolean": False,
    "integer": 3,
    "number": 0.5,
    "object": {},
    "null": None,
}
_OF_FORMAT: Mapping[str, Any] = {"date-time": MOMENT, "date": DAY, "uuid": BATCH}


def for_programs(document: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the calls that tokens may make and those about tokens and webhooks, and the posted events, by name."""
    found = {
        f"{method.upper()} {path}": operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if f"{method.upper()} {path}" in OPEN or "programs" in operation.get("tags", ())
    }
    return found | {name: event["post"] for name, event in document["webhooks"].items()}


def add_to(document: dict[str, Any]) -> None:
    """Add an example to each JSON body that programs send and get, and to each event that is posted."""
    schemas = document["components"]["schemas"]
    for operation in for_programs(document).values():
        good = [body for status, body in operation["responses"].items() if status.startswith("2")]
        for body in (operation.get("requestBody", {}), *good):
            for media, content in body.get("content", {}).items():
                if media == "application/json" and content.get("schema"):
                    content["example"] = _example(content["schema"], schemas, "")


def _example(schema: Schema, schemas: Schema, field: str) -> Any:
    """Return an example of a schema; `field` is `Schema.field`, empty for a whole body."""
    if "$ref" in schema:
        return _of_object(schema["$ref"].rpartition("/")[2], schemas)
    if schema.get("title") in PAYLOADS:
        return PAYLOADS[schema["title"]]
    if "const" in schema:
        return schema["const"]
    name = field.partition(".")[2]
    for known in (field, name):
        if known and known in VALUES and _fits(VALUES[known], schema):
            return VALUES[known]
    options = [one for one in schema.get("anyOf", [schema]) if one.get("type") != "null"]
    first = options[0]
    if "$ref" in first:
        return _example(first, schemas, field)
    if first.get("type") == "array":
        return [_example(first["items"], schemas, field)]
    if first.get("format") in _OF_FORMAT:
        return _OF_FORMAT[first["format"]]
    return _OF_TYPE[first["type"]]


def _of_object(name: str, schemas: Schema) -> Any:
    if name in PAYLOADS:
        return PAYLOADS[name]
    fields = schemas[name].get("properties", {})
    return {field: _example(schema, schemas, f"{name}.{field}") for field, schema in fields.items()}


def _fits(value: object, schema: Schema) -> bool:
    """Return whether a value has the schema's type; fields of one name may have different types."""
    kinds = {one.get("type") for one in schema.get("anyOf", [schema])}
    if kinds == {None}:
        return True
    match value:
        case None:
            return "null" in kinds
        case str():
            return "string" in kinds and not any("format" in one for one in schema.get("anyOf", [schema]))
        case list():
            return "array" in kinds and "$ref" not in schema.get("items", {})
        case Mapping():
            return "object" in kinds
        case _:
            return bool({"integer", "number"} & kinds)
