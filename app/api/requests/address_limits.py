"""Refuse too many calls of one address; `caller.py` counts the calls of one person."""

from starlette.types import Receive, Scope, Send

from app.api.requests.limits_by_path import limits_of_address
from app.api.requests.problems import response_of
from app.http.caller_address import caller_address
from app.http.middleware import HttpMiddleware
from services.core.errors import TooMany
from services.runtime import rate_limits
from services.runtime.rate_limits import SIGN_INS
from settings import CALLBACK_PATH

_LEAVING = frozenset({"/api/auth/discord", "/api/auth/discord/connect"})


class AddressLimits(HttpMiddleware):
    """Refuses (429, Retry-After) too many calls of one address, before their bodies are read."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count the request, and pass it on unless it exceeds the limit."""
        path: str = scope.get("path", "")
        if path.startswith("/api/"):
            try:
                await _count(scope["method"], path, caller_address(scope))
            except TooMany as refused:
                await response_of(refused)(scope, receive, send)
                return
        await self._app(scope, receive, send)


async def _count(method: str, path: str, address: str) -> None:
    if path in _LEAVING:
        await rate_limits.spend_for_address(SIGN_INS, address, share=1)
    elif path == CALLBACK_PATH:
        await rate_limits.spend_for_address(SIGN_INS, f"{address} back", share=1)
    for limit in limits_of_address(method, path):
        await rate_limits.spend_for_address(limit, address)
