"""The panel: one message with three buttons, whose ids never change, and its text."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

from gateways.discord.channels import Message
from services.core.discord_text import COLORS
from settings import settings

VERIFY, MY_ROLES, RECHECK = "holdfast:verify", "holdfast:roles", "holdfast:recheck"
"""The buttons' custom ids. They never change: panels posted years ago still send them."""
BUTTONS = ((VERIFY, "Verify", 1), (MY_ROLES, "My roles", 2), (RECHECK, "Re-check", 2))
"""Custom id, label and Discord's style (1 primary, 2 secondary)."""
SAFETY = "We never DM you, never ask you to connect a wallet, never send links."

_ROW, _BUTTON = 1, 2


def body(bot_id: str) -> dict[str, Any]:
    """Return the message in Discord's format (docs/facts.md#discord-messages)."""
    bot = settings().bot_name
    return {
        "embeds": [
            {
                "title": "Your NFTs, your roles",
                "description": (
                    "Some roles here belong to those who hold certain NFTs. Prove once that a wallet is yours, and "
                    "they come and go by themselves. Nothing is connected and nothing is signed."
                ),
                "color": COLORS["good"],
                "fields": [
                    {
                        "name": "How it goes",
                        "value": (
                            "1. Press **Verify** and give your wallet's address.\n"
                            "2. Show the code that only you see: in the profile's bio, or in a transaction to yourself."
                            "\n3. Your roles arrive within moments. **My roles** says why you have each or not, "
                            "**Re-check** looks again."
                        ),
                    },
                    {
                        "name": "Stay safe",
                        "value": (
                            f"{SAFETY} This message is from {bot} (id {bot_id}); who shows another id and says so is "
                            "an impostor."
                        ),
                    },
                ],
            }
        ],
        "components": [
            {
                "type": _ROW,
                "components": [
                    {"type": _BUTTON, "style": style, "label": label, "custom_id": custom_id}
                    for custom_id, label, style in BUTTONS
                ],
            }
        ],
    }


def is_panel(message: Message, bot_id: str) -> bool:
    """Return whether the message is a panel of ours, of whatever age."""
    return message.author_id == bot_id and any(one.get("custom_id") == VERIFY for one in _buttons(message.components))


def fits(message: Message, wanted: Mapping[str, Any]) -> bool:
    """Return whether the message has a panel's present content; fields that Discord adds do not count."""
    return _said(message.embeds) == _said(wanted["embeds"]) and _offered(message.components) == _offered(
        wanted["components"]
    )


def _said(embeds: Iterable[Any]) -> list[object]:
    return [
        (one.get("title"), one.get("description"), [(part["name"], part["value"]) for part in one.get("fields", [])])
        for one in embeds
    ]


def _offered(components: Iterable[Any]) -> list[tuple[object, object]]:
    return [(one.get("custom_id"), one.get("label")) for one in _buttons(components)]


def _buttons(components: Iterable[object]) -> list[Mapping[str, Any]]:
    rows = [cast("Mapping[str, Any]", row) for row in components if isinstance(row, Mapping)]
    return [button for row in rows for button in row.get("components", []) if isinstance(button, Mapping)]
