"""The API's own description, for programs and as a page for people that loads nothing from elsewhere."""

from html import escape
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, JSONResponse, Response

router = APIRouter(include_in_schema=False)
_STYLE = (
    "body{font:16px/1.5 system-ui;max-width:52rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}"
    "code{font-weight:600}"
)
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"


@router.get("/docs")
async def page(request: Request) -> Response:
    """All calls with what they do: as a page for browsers, as the OpenAPI document for programs."""
    described: dict[str, Any] = request.app.openapi()
    if "text/html" not in request.headers.get("accept", ""):
        return JSONResponse(described, headers={"Vary": "Accept"})
    title = escape(described["info"]["title"])
    calls = "".join(
        f"<dt><code>{method.upper()} {escape(path)}</code></dt><dd>{escape(call.get('description', ''))}</dd>"
        for path, methods in described["paths"].items()
        for method, call in methods.items()
    )
    return HTMLResponse(
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title><style>{_STYLE}</style>"
        f"<h1>{title}</h1><p>{escape(described['info']['description'])} "
        f'The whole description: <a href="/api/openapi.json">/api/openapi.json</a>.</p><dl>{calls}</dl>',
        headers={"Content-Security-Policy": _POLICY, "Vary": "Accept"},
    )
