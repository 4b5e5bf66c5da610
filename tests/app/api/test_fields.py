"""Every field of a call's answer is intended: a service's view reaches the wire unchanged.

`python -m tests.app.api.test_fields` rewrites fields.txt; its diff shows which fields callers gain or lose.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from app.api import api

FIELDS = Path(__file__).with_name("fields.txt")


def fields(document: dict[str, Any]) -> list[str]:
    """Return a line for each call and field of its successful answer: `GET /api/me user.name`."""
    return sorted(
        f"{method.upper()} {path} {name}"
        for path, calls in document["paths"].items()
        for method, call in calls.items()
        for status, answer in call["responses"].items()
        if status.startswith("2")
        for shape in answer.get("content", {}).values()
        for name in _names(document, shape.get("schema", {}), ())
    )


def _names(document: dict[str, Any], schema: dict[str, Any], inside: tuple[str, ...]) -> Iterator[str]:
    if reference := schema.get("$ref"):
        if reference in inside:
            return
        inside = (*inside, reference)
        schema = document["components"]["schemas"][reference.rpartition("/")[2]]
    for choice in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
        yield from _names(document, choice, inside)
    if isinstance(items := schema.get("items"), dict):
        yield from _names(document, items, inside)
    if isinstance(values := schema.get("additionalProperties"), dict):
        yield from (f"*.{name}" for name in _names(document, values, inside))
    for name, value in schema.get("properties", {}).items():
        yield name
        yield from (f"{name}.{below}" for below in _names(document, value, inside))


def test_no_call_answers_with_a_field_that_nobody_meant_to_show() -> None:
    assert fields(api.openapi()) == FIELDS.read_text().splitlines()


def test_every_field_of_an_answer_is_always_there() -> None:
    """A client made from the document need not ask whether a field came."""
    schemas = api.openapi()["components"]["schemas"]
    sent = {schema for schema in schemas if schema.endswith("Payload") or schema in {"RuleChanges", "RuleRemoval"}}
    optional = {
        f"{name}.{field}"
        for name in schemas.keys() - sent
        for field in schemas[name].get("properties", {}).keys() - set(schemas[name].get("required", ()))
    }
    assert optional == set()


def test_a_new_field_is_seen_however_deep_it_is() -> None:
    schemas = {"Row": {"properties": {"id": {}, "rows": {"items": {"$ref": "#/x/Row"}}}}}
    answer = {"200": {"content": {"application/json": {"schema": {"items": {"$ref": "#/x/Row"}}}}}}
    document = {"paths": {"/a": {"get": {"responses": answer}}}, "components": {"schemas": schemas}}
    assert fields(document) == ["GET /a id", "GET /a rows"]
    schemas["Row"]["properties"]["secret"] = {"anyOf": [{"properties": {"key": {}}}, {"type": "null"}]}
    assert fields(document) == ["GET /a id", "GET /a rows", "GET /a secret", "GET /a secret.key"]


if __name__ == "__main__":
    FIELDS.write_text("\n".join(fields(api.openapi())) + "\n")
