"""The REST API: one module per resource, joined here into the ASGI app that is served beside the screens."""

from app.api import analytics, auth, collections, discord, health, me, rules, servers, wallets
from app.api.requests import openapi, problems
from app.api.requests.address_limits import AddressLimits
from app.api.requests.body_limit import BodyLimit
from app.api.requests.head_requests import HeadRequests
from app.api.server import (
    activity,
    address_lists,
    api_tokens,
    breaker,
    exports,
    members,
    moves,
    payouts,
    protection,
    replacements,
    rule_documents,
    webhook,
    webhook_events,
)
from app.api.server import health as server_health
from app.http.access_log import AccessLog
from app.http.concurrency import WithBody
from app.http.headers import SecurityHeaders
from app.http.origins import OriginGate
from settings import settings

_ROUTERS = (
    health.router, auth.router, exports.router, rule_documents.router, payouts.router,
    address_lists.router, servers.router, breaker.router, api_tokens.router, webhook.router,
    server_health.router, members.router, protection.router, activity.router, analytics.router, discord.router,
    collections.router, rules.router, wallets.router, me.router, openapi.router, moves.router, replacements.router,
    problems.router,
)  # fmt: skip
"""The routers, in the order in which a path is compared with their calls."""


def _made() -> openapi.DescribedApi:
    """Return the API with its calls, its error answers, and its middleware."""
    made = openapi.DescribedApi(
        title=f"{settings().product_name} API",
        description="Everything the dashboard does. Sign in with the cookie or the `x-session-id` header. "
        "A program sends a server's API token: `Authorization: Bearer hf_…`.",
        version="1",
        webhooks=webhook_events.router,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        routes=[call for router in _ROUTERS for call in router.routes],
    )
    problems.answer_for(made)
    # The last one added is outermost.
    for gate in (
        WithBody,
        BodyLimit,
        AddressLimits,
        OriginGate,
        problems.Faults,
        HeadRequests,
        SecurityHeaders,
        AccessLog,
    ):
        made.add_middleware(gate)
    return made


api = _made()
