"""The examples of the OpenAPI document: every body of a program's call has one, and it fits the body's schema."""

from collections.abc import Iterator
from typing import Any, cast

from jsonschema import Draft202012Validator, FormatChecker

from app.api import api
from app.api.requests import examples
from app.api.requests.scopes import OPEN


def bodies() -> dict[str, dict[str, Any]]:
    """Return the JSON bodies that programs send, receive and are posted, by call and direction."""
    found: dict[str, dict[str, Any]] = {}
    for name, operation in examples.for_programs(api.openapi()).items():
        sent = {"sent": operation.get("requestBody", {})}
        for way, body in (sent | operation["responses"]).items():
            if way == "sent" or way.startswith("2"):
                content = body.get("content", {})
                assert not content or content.keys() <= {"application/json", "text/csv"}, f"{name} {way}"
                if "application/json" in content:
                    found[f"{name} {way}"] = content["application/json"]
    return found


def mistakes(body: dict[str, Any], example: Any) -> list[str]:
    schema = {**body["schema"], "components": api.openapi()["components"]}
    fits = Draft202012Validator(schema, format_checker=FormatChecker())
    return [fault.message for fault in fits.iter_errors(example)]


def test_every_body_of_a_programs_call_has_an_example_of_its_shape() -> None:
    found = bodies()
    assert len(found) > len(OPEN)
    assert {name: mistakes(body, body["example"]) for name, body in found.items()} == {name: [] for name in found}


def test_an_example_of_another_shape_is_seen() -> None:
    body = bodies()["GET /api/servers 200"]
    assert mistakes(body, [{**body["example"][0], "internalId": "twelve"}]) == ["'twelve' is not of type 'integer'"]


def texts(example: Any, at: str) -> Iterator[str]:
    """Yield where an example has a text without a value."""
    if isinstance(example, dict):
        for name, value in cast("dict[str, Any]", example).items():
            yield from texts(value, f"{at}.{name}")
    elif isinstance(example, list):
        for value in cast("list[Any]", example):
            yield from texts(value, at)
    elif example == examples.NO_VALUE:
        yield at


def test_every_text_of_an_example_has_a_value() -> None:
    assert [at for name, body in bodies().items() for at in texts(body["example"], name)] == []
    assert list(texts({"a": [{"b": examples.NO_VALUE}]}, "x")) == ["x.a.b"]


def test_the_document_says_what_a_token_needs() -> None:
    document = api.openapi()
    assert document["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    for call, scopes in OPEN.items():
        method, _, path = call.partition(" ")
        operation = document["paths"][path][method.lower()]
        assert operation["x-scopes"] == sorted(scopes)
        assert {"token": []} in operation["security"]


def test_a_file_is_described_as_one() -> None:
    for call in OPEN:
        if call.endswith((".csv", "{name}")):
            answer = api.openapi()["paths"][call.partition(" ")[2]]["get"]["responses"]["200"]
            assert list(answer["content"]) == ["text/csv"], call
