"""An answer as Discord writes it."""

import json
from typing import Any

from aiohttp import web


def answered(body: Any, status: int, headers: dict[str, str] | None = None) -> web.Response:
    """Return a JSON answer whose content type is exactly application/json, with `Via` as Discord's edge writes it."""
    common = {"Via": "1.1 google", **(headers or {})}
    if status == 204:
        return web.Response(status=204, headers=common)
    encoded = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    return web.Response(body=encoded, status=status, headers={**common, "Content-Type": "application/json"})
