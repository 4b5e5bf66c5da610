"""The API's description: for programs, and as a page for people that loads nothing from other sites."""

from functools import cache
from html import escape
from typing import Any

from fastapi import FastAPI, Request
from fastapi.routing import APIRoute
from starlette.responses import HTMLResponse, JSONResponse, Response

from app.api.requests import examples
from app.api.requests.caller import caller_of
from app.api.requests.problems import ProblemAnswer
from app.api.requests.routers import calls
from app.api.requests.scopes import OPEN
from services.accounts import sessions

router = calls(include_in_schema=False)
_STYLE = (
    "body{font:16px/1.5 system-ui;max-width:52rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}"
    "code{font-weight:600}"
)
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"


class DescribedApi(FastAPI):
    """An API whose description has examples, how each call knows its caller, and, as `x-scopes`, a token's scopes."""

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI document; it is made once."""
        if self.openapi_schema is None:
            document = super().openapi()
            components = document["components"]
            components["securitySchemes"] = _ways()
            components["schemas"][ProblemAnswer.__name__] = ProblemAnswer.model_json_schema()
            components["schemas"] = dict(sorted(components["schemas"].items()))
            for path, method in _closed_calls(self):
                document["paths"][path][method]["security"] = [{"session": []}, {"cookie": []}]
            for call, scopes in OPEN.items():
                method, _, path = call.partition(" ")
                operation = document["paths"][path][method.lower()]
                operation["security"].append({"token": []})
                operation["x-scopes"] = sorted(scopes)
            described = (*document["paths"].values(), *document["webhooks"].values())
            for operation in (one for path in described for one in path.values()):
                operation["summary"] = operation["operationId"].replace("_", " ").capitalize()
            examples.add_to(document)
            self.openapi_schema = document
        return self.openapi_schema


def _ways() -> dict[str, dict[str, str]]:
    """Return the ways in which a call knows its caller; any one of them is enough."""
    return {
        "session": {"type": "apiKey", "in": "header", "name": sessions.HEADER, "description": "A session's id."},
        "cookie": {"type": "apiKey", "in": "cookie", "name": sessions.cookie_name(), "description": "In browsers."},
        "token": {"type": "http", "scheme": "bearer", "description": "An API token of one server."},
    }


def _closed_calls(described: FastAPI) -> list[tuple[str, str]]:
    """Return the path and the method of each described call that needs a caller."""
    return [
        (route.path_format, method.lower())
        for route in described.routes
        if isinstance(route, APIRoute) and route.include_in_schema
        if any(needed.call is caller_of for needed in route.dependant.dependencies)
        for method in route.methods or ()
    ]


@router.get("/openapi.json")
async def document(request: Request) -> Response:
    """Return all calls as the OpenAPI document."""
    return Response(_document(request.app), media_type="application/json")


@router.get("/docs")
async def page(request: Request) -> Response:
    """Return the description of all calls: a page for browsers, the OpenAPI document for programs."""
    if "text/html" not in request.headers.get("accept", ""):
        return Response(_document(request.app), media_type="application/json", headers={"Vary": "Accept"})
    return HTMLResponse(_page(request.app), headers={"Content-Security-Policy": _POLICY, "Vary": "Accept"})


# Cached because anybody may ask at any rate; the answer does not change while the process runs.
@cache
def _document(app: FastAPI) -> bytes:
    return bytes(JSONResponse(app.openapi()).body)


@cache
def _page(app: FastAPI) -> str:
    described = app.openapi()
    title = escape(described["info"]["title"])
    calls = "".join(
        f"<dt><code>{method.upper()} {escape(path)}</code></dt><dd>{escape(call.get('description', ''))}</dd>"
        for path, methods in described["paths"].items()
        for method, call in methods.items()
    )
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title><style>{_STYLE}</style>"
        f"<h1>{title}</h1><p>{escape(described['info']['description'])} "
        f'The whole description: <a href="/api/openapi.json">/api/openapi.json</a>.</p><dl>{calls}</dl>'
    )
