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
    """Return a 401 for a missing or unknown token."""
    return DiscordError(401, 0, "401: Unauthorized")


def unknown(what: str) -> DiscordError:
    """Return a 404 for a thing that does not exist: "Guild", "Member", "Role", "Channel", "Message", …"""
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
    """Return the refusal of Discord's edge for a request without a User-Agent."""
    return DiscordError(403, 40333, "internal network error")


def missing_access() -> DiscordError:
    """Return the refusal for a thing that exists but that the caller may not see."""
    return DiscordError(403, 50001, "Missing Access")


def missing_permissions() -> DiscordError:
    """Return the refusal for a caller who lacks the permission or is too low in the hierarchy."""
    return DiscordError(403, 50013, "Missing Permissions")


def missing_scope() -> DiscordError:
    """Return the refusal for a bearer whose grant does not cover the call."""
    return DiscordError(401, 50026, "Missing required OAuth2 scope")


def invalid_role() -> DiscordError:
    """Return the refusal for a role that cannot be given by hand."""
    return DiscordError(400, 50028, "Invalid Role")


def form_error(field: str, message: str) -> DiscordError:
    """Return 50035 for one field; a dotted name is nested.

    The inner code is a number, as in the OpenAPI description.
    """
    errors: dict[str, Any] = {"_errors": [{"code": 50035, "message": message}]}
    for part in reversed(field.split(".")):
        errors = {part: errors}
    return DiscordError(400, 50035, "Invalid Form Body", errors)
