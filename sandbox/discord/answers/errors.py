"""Discord's refusals with their own status, code and words."""

from typing import Any


class DiscordError(Exception):
    """A REST answer that is not a success."""

    def __init__(self, status: int, code: int, message: str, errors: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.body: dict[str, Any] = {"message": message, "code": code}
        if errors is not None:
            self.body["errors"] = errors


def unauthorized() -> DiscordError:
    """No token, or one that nobody has."""
    return DiscordError(401, 0, "401: Unauthorized")


def unknown(what: str) -> DiscordError:
    """404 for a thing that is not there: "Guild", "Member", "Role", "Channel", "Message", …"""
    code = {
        "Application": 10002,
        "Channel": 10003,
        "Guild": 10004,
        "Member": 10007,
        "Message": 10008,
        "Overwrite": 10009,
        "Role": 10011,
        "User": 10013,
        "Webhook": 10015,
        "interaction": 10062,
        "application command": 10063,
    }[what]
    return DiscordError(404, code, f"Unknown {what}")


def blocked() -> DiscordError:
    """Discord's edge lets no request pass that does not say what sends it."""
    return DiscordError(403, 40333, "internal network error")


def missing_access() -> DiscordError:
    """The thing exists, and the caller may not see it."""
    return DiscordError(403, 50001, "Missing Access")


def missing_permissions() -> DiscordError:
    """The caller lacks the permission, or does not stand high enough."""
    return DiscordError(403, 50013, "Missing Permissions")


def missing_scope() -> DiscordError:
    """The bearer's grant does not cover the call."""
    return DiscordError(401, 50026, "Missing required OAuth2 scope")


def invalid_role() -> DiscordError:
    """A role that cannot be given by hand."""
    return DiscordError(400, 50028, "Invalid Role")


def form_error(field: str, message: str) -> DiscordError:
    """50035 for one field; a dotted name is nested. The inner code is a number as in the OpenAPI description."""
    errors: dict[str, Any] = {"_errors": [{"code": 50035, "message": message}]}
    for part in reversed(field.split(".")):
        errors = {part: errors}
    return DiscordError(400, 50035, "Invalid Form Body", errors)
