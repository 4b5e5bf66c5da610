"""The specification's calls (section 7) and the fields of their requests and answers (section 3), by name."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic.alias_generators import to_snake
from starlette.routing import Route

from app.api import api
from app.api.requests.scopes import OPEN

USER = {
    "id", "username", "email", "discordId", "discordUsername", "discordAvatar", "isDiscordConnected", "isVerified",
    "verifiedWallets",
}  # fmt: skip
WALLET = {"id", "walletAddress", "blockchain", "verificationMethod", "createdAt"}
SERVER = {"id", "internalId", "name", "botInvited", "verificationRulesCount", "verificationRules"}
RULE = {
    "ruleName", "contractAddress", "blockchain", "verificationType", "minTokens", "roleId", "roleColor", "traitType",
    "traitValue", "tokenIds", "roleName", "serverId",
}  # fmt: skip
ANSWERS = {
    "GET /api/auth/user": USER,
    "POST /api/auth/logout": set[str](),
    "GET /api/servers": SERVER,
    "GET /api/analytics": {"totalVerifications", "activeRules", "connectedServers"},
    "POST /api/admin/sync-servers": set[str](),
    "GET /api/discord/invite": {"inviteUrl"},
    "GET /api/discord/servers": {"id", "name", "icon", "owner", "hasBot"},
    "GET /api/discord/invite-url": {"inviteUrl"},
    "POST /api/servers": {"id", "serverName"},
    "GET /api/wallet-verifications": WALLET,
    "POST /api/verify-wallet": {"success", "message"},
    "GET /api/discord/roles": {"id", "name", "color"},
    "POST /api/collection/parse": {"name", "contractAddress", "blockchain"},
    "GET /api/collection/{contract}/traits": {"traitTypes"},
    "GET /api/collection/{contract}/traits/{trait_type}": {"traitValues"},
    "POST /api/verification-rules": set[str](),
}
PAYLOADS = {
    "POST /api/servers": {"discordServerId", "serverName", "serverIcon", "description"},
    "POST /api/verify-wallet": {"userId", "walletAddress", "verificationMethod"},
    "POST /api/collection/parse": {"input", "blockchain"},
    "POST /api/verification-rules": RULE,
}
QUERIES = {
    "GET /api/discord/invite-url": {"serverId"},
    "GET /api/wallet-verifications": {"userId"},
    "GET /api/discord/roles": {"serverId"},
    "GET /api/collection/{contract}/traits": {"blockchain"},
    "GET /api/collection/{contract}/traits/{trait_type}": {"blockchain"},
}

RULES = "/api/verification-rules"
OF_SINGLE_TYPES = {"min", "max", "function", "args", "path", "compare", "value", "addresses", "list", "family"}
"""The fields of a rule that only some types have."""
FOR_EVERYBODY = {
    "GET /health", "GET /api/status", "GET /api/auth/discord", "GET /api/auth/discord/connect",
    "GET /api/auth/discord/callback", "GET /api/auth/logout", "POST /api/auth/logout",
}  # fmt: skip
KEYWORDS = {
    "$ref", "additionalProperties", "anyOf", "const", "default", "description", "enum", "format", "items", "maxItems",
    "maxLength", "maximum", "minItems", "minLength", "minimum", "pattern", "properties", "propertyNames", "required",
    "title", "type",
}  # fmt: skip
"""The words of JSON Schema that the document uses."""


def described(call: str) -> dict[str, Any]:
    """Return the API document's description of a call."""
    method, path = call.split()
    return api.openapi()["paths"][path][method.lower()]


def fields(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an object, or of the objects in a list, by name."""
    while "$ref" in schema or schema.get("type") == "array" or "anyOf" in schema:
        if "anyOf" in schema:
            schema = next(one for one in schema["anyOf"] if one.get("type") != "null")
        elif "$ref" in schema:
            schema = api.openapi()["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        else:
            schema = schema["items"]
    return schema.get("properties", {})


@pytest.mark.parametrize("way", ["discord", "discord/connect", "discord/callback", "logout"])
def test_what_a_browser_walks_through_is_described_too(way: str) -> None:
    assert "302" in described(f"GET /api/auth/{way}")["responses"]


@pytest.mark.parametrize("call", ANSWERS)
def test_a_call_answers_with_the_specifications_fields(call: str) -> None:
    answers = described(call)["responses"]
    body = next(answers[code] for code in ("200", "201") if code in answers)["content"]["application/json"]["schema"]
    assert fields(body).keys() >= ANSWERS[call]


@pytest.mark.parametrize("call", PAYLOADS)
def test_a_call_takes_the_specifications_fields(call: str) -> None:
    body = described(call)["requestBody"]["content"]["application/json"]["schema"]
    assert fields(body).keys() >= PAYLOADS[call]


@pytest.mark.parametrize("call", QUERIES)
def test_a_call_is_asked_with_the_specifications_parameters(call: str) -> None:
    assert {one["name"] for one in described(call)["parameters"] if one["in"] == "query"} >= QUERIES[call]


@pytest.mark.parametrize(
    "call",
    [f"POST {RULES}", f"PATCH {RULES}/{{rule_id}}", *(f"POST {RULES}/{way}" for way in ("preview", "try", "reach"))],
)
def test_a_rule_takes_the_fields_of_every_type(call: str) -> None:
    body = described(call)["requestBody"]["content"]["application/json"]["schema"]
    assert fields(body).keys() >= OF_SINGLE_TYPES


def test_a_call_says_how_its_caller_is_known() -> None:
    schemes = api.openapi()["components"]["securitySchemes"]
    assert {name: (one.get("in"), one.get("name")) for name, one in schemes.items()} == {
        "session": ("header", "x-session-id"), "cookie": ("cookie", "hf_session"), "token": (None, None),
    }  # fmt: skip
    for path, methods in api.openapi()["paths"].items():
        for method, operation in methods.items():
            call = f"{method.upper()} {path}"
            ways = [] if call in FOR_EVERYBODY else ["session", "cookie", *(["token"] if call in OPEN else [])]
            assert operation.get("security", []) == [{way: []} for way in ways], call


@pytest.mark.parametrize("call", ["GET /health", "GET /api/status"])
def test_what_is_asked_about_the_state_may_answer_that_it_is_bad(call: str) -> None:
    assert set(described(call)["responses"]) == {"200", "503"}


def schemas(node: Any, *, is_schema: bool = False) -> Iterator[dict[str, Any]]:
    """Yield every schema of a part of the document, however deep."""
    if isinstance(node, list):
        for one in node:
            yield from schemas(one, is_schema=is_schema)
    elif isinstance(node, dict):
        if is_schema:
            yield node
        for name, value in node.items():
            if name in {"properties", "schemas"}:
                yield from schemas(list(value.values()), is_schema=True)
            elif name not in {"default", "example", "enum", "const"}:
                below = name in {"schema", "items", "anyOf", "additionalProperties", "propertyNames"}
                yield from schemas(value, is_schema=below)


def test_the_document_limits_values_in_words_of_json_schema() -> None:
    found = {word for one in schemas(api.openapi()) for word in one}
    assert "maximum" in found
    assert found - KEYWORDS == set()


def test_a_description_names_fields_as_the_json_does() -> None:
    """Views are declared in services, where their fields have Python's names; their docstrings are the descriptions."""
    document = api.openapi()
    shapes = document["components"]["schemas"]
    pythons = {to_snake(field): field for one in shapes.values() for field in one.get("properties", {})}
    operations = [one for methods in document["paths"].values() for one in methods.values()]
    told = [(str(one.get("title") or one["operationId"]), one.get("description", "")) for one in operations]
    told += [(name, one.get("description", "")) for name, one in shapes.items()]
    words = [(of, word) for of, text in told for word in re.findall(r"`(\w+)`", text)]
    assert len(words) > 50
    assert [(of, word) for of, word in words if pythons.get(word, word) != word] == []


def test_every_call_has_a_row_in_the_specifications_table() -> None:
    page = (Path(__file__).parents[4] / "docs" / "specification.md").read_text()
    calls = {f"{method.upper()} {path}" for path, methods in api.openapi()["paths"].items() for method in methods}
    assert len(calls) > 40
    assert {call for call in calls if call not in page} == set()


def test_no_call_is_left_to_be_built_by_the_first_request() -> None:
    assert len(api.routes) > 90
    assert [route for route in api.routes if not isinstance(route, Route)] == []
