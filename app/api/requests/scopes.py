"""Which calls an API token may make, and with which scopes; every other call is closed to tokens."""

from collections.abc import Mapping

from locales import _
from services.core.actors import TokenUse
from services.core.errors import Forbidden, ServerNotFound

_AT = "/api/servers/{server_id}"
_RULES = "/api/verification-rules"
READ, RULES, MEMBERS = frozenset({"read"}), frozenset({"rules"}), frozenset({"members"})

OPEN: Mapping[str, frozenset[str]] = {
    "GET /api/servers": READ,
    f"GET {_AT}/health": READ,
    f"GET {_AT}/move": READ,
    f"GET {_AT}/migrations": READ,
    f"GET {_RULES}": READ,
    f"GET {_RULES}/{{rule_id}}": READ,
    f"GET {_RULES}/reach/{{reach_id}}": READ,
    "GET /api/discord/roles": READ,
    f"GET {_AT}/address-lists/{{name}}": RULES,
    f"POST {_AT}/address-lists": RULES,
    f"POST {_AT}/breaker": RULES,
    f"POST {_AT}/import": RULES,
    f"POST {_AT}/migrations": RULES,
    f"POST {_AT}/migrations/{{migration_id}}/end": RULES,
    f"POST {_AT}/migrations/role": RULES,
    f"POST {_AT}/recheck": RULES,
    f"PUT {_AT}/move": RULES,
    f"DELETE {_AT}/move": RULES,
    f"POST {_AT}/move/approve": RULES,
    f"PUT {_AT}/protection/roles/{{role_id}}": RULES,
    f"POST {_RULES}": RULES,
    f"POST {_RULES}/activate": RULES,
    f"POST {_RULES}/reach": RULES,
    f"POST {_RULES}/try": RULES,
    f"POST {_RULES}/try-call": RULES,
    f"PATCH {_RULES}/{{rule_id}}": RULES,
    f"DELETE {_RULES}/{{rule_id}}": RULES,
    "POST /api/collection/parse": RULES,
    "GET /api/collection/{contract}/traits": RULES,
    "GET /api/collection/{contract}/traits/{trait_type}": RULES,
    f"GET {_AT}/events": MEMBERS,
    f"GET {_AT}/events.csv": MEMBERS,
    f"GET {_AT}/members": MEMBERS,
    f"GET {_AT}/members.csv": MEMBERS,
    f"GET {_AT}/members/{{discord_id}}/why": MEMBERS,
    f"POST {_AT}/members/{{discord_id}}/recheck": MEMBERS,
    f"GET {_AT}/move/members": MEMBERS,
    f"GET {_AT}/payout.csv": MEMBERS,
    f"GET {_AT}/protection": MEMBERS,
    f"PUT {_AT}/protection/members/{{discord_id}}": MEMBERS,
    f"POST {_AT}/health/follow-again": MEMBERS,
    # Both contain the addresses of lists, as `address-lists` does; the second contains members too.
    f"GET {_AT}/rules.json": READ | RULES,
    f"GET {_AT}/export": READ | RULES | MEMBERS,
    # These contain members by name, and the requirements of rules.
    f"GET {_AT}/breaker": READ | MEMBERS,
    f"POST {_AT}/move/preview": RULES | MEMBERS,
    f"POST {_AT}/migrations/preview": RULES | MEMBERS,
    f"POST {_AT}/migrations/role/preview": RULES | MEMBERS,
    f"POST {_AT}/migrations/{{migration_id}}/preview": RULES | MEMBERS,
    f"POST {_RULES}/preview": RULES | MEMBERS,
    f"GET {_AT}/events/{{batch}}/undo": RULES | MEMBERS,
    f"POST {_AT}/events/{{batch}}/undo": RULES | MEMBERS,
}
"""The scopes of each call; a token needs all of them. Paths are those of the OpenAPI document."""


def check(token: TokenUse, method: str, path: str, server_id: str | None) -> None:
    """Raise ServerNotFound for a call about another server, Forbidden for one outside the token's scopes.

    `server_id` is the one in the call's path, if any; the services check a server that a call names elsewhere.
    """
    if server_id is not None and server_id != str(token.server_id):
        raise ServerNotFound
    needed = OPEN.get(f"{method} {path}")
    if needed is None:
        raise Forbidden(_("API tokens cannot make this call."))
    if missing := sorted(needed - token.scopes):
        raise Forbidden(
            _("This token has no scope for this call: it needs {scope}.").format(scope=" and ".join(missing))
        )
