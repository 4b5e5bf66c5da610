"""The operator pages' facts about this installation: its callback URL, and which settings have a value."""

from dataclasses import dataclass
from urllib.parse import urlsplit

import reflex as rx

from settings import CALLBACK_PATH, Settings, settings
from state.core.gate import public


@dataclass(frozen=True)
class SettingPresence:
    """A setting's name and whether it has a value; the value never leaves the server."""

    name: str
    present: bool


class OperatorState(rx.State):
    """Public facts: anybody may open these pages."""

    host: str = ""
    """The host in the browser; empty before the page has loaded."""
    callback_url: str = ""
    used_callback_url: str = ""
    """The callback URL that sign-in uses, if it differs."""
    presences: list[SettingPresence] = []

    @public
    def load(self) -> None:
        """Build the callback URL from the host in the browser, and read which settings have a value."""
        self.host = urlsplit(self.router.url.origin).hostname or ""
        self.callback_url = f"{self.router.url.origin}{CALLBACK_PATH}"
        used = f"{settings().public_url.rstrip('/')}{CALLBACK_PATH}"
        self.used_callback_url = used if used != self.callback_url else ""
        # The built screens may be older than the setting that removes these pages.
        self.presences = presences(settings()) if settings().operator_pages else []


def presences(known: Settings) -> list[SettingPresence]:
    """Return which of the settings for sign-in have a value."""
    secrets = {
        "DISCORD_CLIENT_SECRET": known.discord_client_secret,
        "DISCORD_BOT_TOKEN": known.discord_bot_token,
        "SECRET_KEY": known.secret_key,
    }
    texts = {
        "DISCORD_CLIENT_ID": known.discord_client_id,
        **{name: "" if secret is None else secret.get_secret_value() for name, secret in secrets.items()},
        "DATABASE_URL": known.database_url or "",
        "PUBLIC_URL": known.public_url,
    }
    return [SettingPresence(name, bool(text.strip())) for name, text in texts.items()]
