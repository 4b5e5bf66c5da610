"""The interactions in progress: what a person did, and what the bot has answered so far."""

import asyncio
import os
import secrets
import time
from dataclasses import dataclass, field
from typing import Any

from sandbox.discord.actions import messages
from sandbox.discord.answers.errors import DiscordError, form_error, unknown
from sandbox.discord.forms import messages as message_forms
from sandbox.discord.forms import modals
from sandbox.discord.forms.components import CHECKBOX
from sandbox.discord.forms.schema import NO_OBJECT, REQUIRED, Form
from sandbox.discord.world import shapes
from sandbox.discord.world.entities import EPHEMERAL, Message
from sandbox.discord.world.protocols import Discord
from sandbox.discord.world.snowflakes import now_iso

COMMAND, COMPONENT, AUTOCOMPLETE, MODAL_SUBMIT = 2, 3, 4, 5
MESSAGE, DEFERRED, DEFERRED_UPDATE, UPDATE, CHOICES, MODAL = 4, 5, 6, 7, 8, 9
ANSWER_SECONDS, TOKEN_SECONDS = float(os.environ.get("SANDBOX_ANSWER_SECONDS") or 3), 900.0
"""Seconds for the bot's first answer, and seconds for which a token is valid.

Discord gives a bot three seconds. Tests on a busy machine give it more, unless they are about this limit.
"""
LOADING = 1 << 7
COMMAND_MESSAGE = 20
NO_GUILD = "0"
"""The guild id of an interaction in a direct message or a group."""


@dataclass
class Interaction:
    """One use of a command, button, select or modal.

    `source` is the message whose component was used; `source_deleted` is whether the bot deleted it through an
    interaction. `option_type` is Discord's number for the type of the option that is being completed.
    """

    id: str
    kind: int
    guild_id: str
    channel_id: str
    user_id: str
    source: Message | None = None
    source_deleted: bool = False
    option_type: int = 3
    token: str = field(default_factory=lambda: secrets.token_urlsafe(120))
    began: float = field(default_factory=time.monotonic)
    callback: int | None = None
    original: Message | None = None
    messages: dict[str, Message] = field(default_factory=dict)
    choices: list[Any] | None = None
    modal: dict[str, Any] | None = None
    edited: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def answered(self) -> bool:
        """Whether there is something to see; a deferral alone does not count."""
        if self.callback in (DEFERRED, DEFERRED_UPDATE):
            return self.edited or any(message is not self.original for message in self.messages.values())
        return self.callback is not None


class Interactions:
    """The interactions of the last 15 minutes, with the messages that only one person sees."""

    def __init__(self, discord: Discord) -> None:
        self.discord = discord
        self._by_token: dict[str, Interaction] = {}
        self.modals: dict[tuple[str, str], tuple[dict[str, Any], Message | None]] = {}

    def begin(self, interaction: Interaction) -> None:
        """Remember an interaction whose event is about to be sent."""
        now = time.monotonic()
        self._by_token = {t: i for t, i in self._by_token.items() if now - i.began < TOKEN_SECONDS}
        self._by_token[interaction.token] = interaction

    def forget(self) -> None:
        """End every interaction."""
        self._by_token.clear()
        self.modals.clear()

    def by_id(self, interaction_id: str) -> Interaction | None:
        """Return an interaction that is still remembered, or None."""
        return next((i for i in self._by_token.values() if i.id == interaction_id), None)

    def hidden_messages(self, user_id: str) -> list[Message]:
        """Return the ephemeral messages that this person can see, each once: several presses may have changed it."""
        shown = {
            message.id: message
            for interaction in self._by_token.values()
            for message in interaction.messages.values()
            if message.flags & EPHEMERAL and interaction.user_id == user_id
        }
        return list(shown.values())

    def hidden_ids(self) -> set[str]:
        """Return the ids of all ephemeral messages that somebody can see."""
        return {
            message.id
            for interaction in self._by_token.values()
            for message in interaction.messages.values()
            if message.flags & EPHEMERAL
        }

    def live(self, token: str) -> Interaction:
        """Return the answered interaction of a webhook token. Raises 10015 before an answer, 50027 after 15 minutes."""
        interaction = self._by_token.get(token)
        if interaction is None or time.monotonic() - interaction.began > TOKEN_SECONDS:
            raise DiscordError(401, 50027, "Invalid Webhook Token")
        if interaction.callback is None:
            raise unknown("Webhook")
        return interaction

    def call_back(self, interaction_id: str, token: str, form: Form) -> Interaction:
        """Apply the first answer.

        Raises 10062 after 3 s, 40060 for a second one, 50035 for one that does not fit, and 10008 for a change of a
        message that was deleted.
        """
        interaction = self._by_token.get(token)
        if interaction is None or interaction.id != interaction_id:
            raise unknown("interaction")
        if interaction.callback is not None:
            raise DiscordError(400, 40060, "Interaction has already been acknowledged.")
        if time.monotonic() - interaction.began > ANSWER_SECONDS:
            raise unknown("interaction")
        kind = form.get("type")
        if type(kind) is not int or not _fits(interaction, kind):
            raise form_error("type", "This callback type does not fit the interaction.")
        data = form.get("data")
        if data is not None and not isinstance(data, dict):
            raise form_error("data", NO_OBJECT)
        if data is None and kind == CHOICES:
            raise form_error("data", REQUIRED)
        self._take(interaction, kind, data or {})
        interaction.callback = kind
        interaction.changed.set()
        return interaction

    def _take(self, interaction: Interaction, kind: int, data: Form) -> None:
        match kind:
            case 4:
                message = self._message(interaction)
                messages.write(self.discord, message, data, ephemeral_allowed=True, path=("data",))
                self._show(interaction, message)
                interaction.original = message
            case 5:
                message = self._message(interaction)
                message.flags |= LOADING | (message_forms.message(data, ("data",)).get("flags") or 0) & EPHEMERAL
                interaction.original = interaction.messages[message.id] = message
            case 6 | 7:
                interaction.original = source = interaction.source
                if source is not None:
                    if kind == UPDATE:
                        self._need_there(interaction, source)
                        messages.write(self.discord, source, data, ephemeral_allowed=False, path=("data",))
                        messages.edited(self.discord, source)
                    if self._is_there(interaction, source):
                        interaction.messages[source.id] = source
            case 8:
                interaction.choices = modals.choices(data, interaction.option_type, ("data",))
            case _:
                interaction.modal = _modal(data)
                key = interaction.user_id, interaction.modal["custom_id"]
                self.modals[key] = interaction.modal, interaction.source

    def follow_up(self, interaction: Interaction, form: Form) -> Message:
        """Add another message; after a deferral, the first one takes the deferral's place."""
        if interaction.callback == DEFERRED and not interaction.edited and interaction.original is not None:
            return self.edit(interaction, interaction.original, form)
        message = self._message(interaction)
        messages.write(self.discord, message, form, ephemeral_allowed=True)
        self._show(interaction, message)
        interaction.changed.set()
        return message

    def edit(self, interaction: Interaction, message: Message, form: Form) -> Message:
        """Change a message of this interaction; ephemerality stays as it was."""
        loading = bool(message.flags & LOADING)
        messages.write(self.discord, message, form, ephemeral_allowed=False)
        message.flags &= ~LOADING
        if loading:
            self._show(interaction, message)
        else:
            messages.edited(self.discord, message)
        interaction.edited = interaction.edited or message is interaction.original
        interaction.changed.set()
        return message

    def message(self, interaction: Interaction, message_id: str) -> Message:
        """Return a message of this interaction, by its id or "@original". Raises 10008."""
        wanted = interaction.original if message_id == "@original" else interaction.messages.get(message_id)
        if wanted is None or wanted.id not in interaction.messages:
            raise unknown("Message")
        self._need_there(interaction, wanted)
        return wanted

    def _need_there(self, interaction: Interaction, message: Message) -> None:
        """Raise 10008 for a message that was deleted."""
        if not self._is_there(interaction, message):
            raise unknown("Message")

    def _is_there(self, interaction: Interaction, message: Message) -> bool:
        """Return whether a message was not deleted.

        Ephemeral and loading messages, and those of direct messages, are only with their interactions.
        """
        if interaction.guild_id == NO_GUILD or message.flags & (EPHEMERAL | LOADING):
            return message is not interaction.source or not interaction.source_deleted
        return message.id in self.discord.world.messages.get(message.channel_id, {})

    def delete(self, interaction: Interaction, message: Message) -> None:
        """Delete a message of this interaction, which a press of its button may share with an earlier one."""
        for one in self._by_token.values():
            one.messages.pop(message.id, None)
            one.source_deleted = one.source_deleted or one.source is message
        interaction.edited = True
        messages.deleted(self.discord, message)
        interaction.changed.set()

    def _message(self, interaction: Interaction) -> Message:
        discord = self.discord
        message = Message(discord.world.ids.next(), interaction.channel_id, discord.bot_id, "", now_iso())
        message.webhook_id = discord.bot_id
        message.type = COMMAND_MESSAGE if interaction.kind == COMMAND and not interaction.messages else 0
        return message

    def _show(self, interaction: Interaction, message: Message) -> None:
        if message.flags & EPHEMERAL:
            message.seen_by = interaction.user_id
        interaction.messages[message.id] = message
        messages.posted(self.discord, message)

    def seen(self, interaction: Interaction) -> dict[str, Any]:
        """Return what the person sees by now, in the form of POST /control/interactions."""
        shown: dict[str, Any] = {
            "id": interaction.id,
            "messages": [
                {
                    "id": message.id,
                    "content": message.content,
                    "embeds": message.embeds,
                    "components": message.components,
                    "ephemeral": bool(message.flags & EPHEMERAL),
                    "deferred": message is interaction.original and interaction.callback in (DEFERRED, DEFERRED_UPDATE),
                }
                for message in interaction.messages.values()
            ],
        }
        if interaction.modal is not None:
            shown["modal"] = interaction.modal["shown"]
        if interaction.choices is not None:
            shown["choices"] = interaction.choices
        return shown

    def resource(self, interaction: Interaction) -> dict[str, Any]:
        """Return the body of a callback with `with_response=true`."""
        about: dict[str, Any] = {"id": interaction.id, "type": interaction.kind}
        message = interaction.original
        if message is None or interaction.callback is None:
            return {"interaction": about}
        about |= {
            "response_message_id": message.id,
            "response_message_loading": bool(message.flags & LOADING),
            "response_message_ephemeral": bool(message.flags & EPHEMERAL),
        }
        # A deferral is described as what it will become (facts: InteractionCallbackResponse).
        kind = MESSAGE if interaction.callback in (MESSAGE, DEFERRED) else UPDATE
        shape = shapes.message(message, self.discord.world.users[message.author_id])
        return {"interaction": about, "resource": {"type": kind, "message": shape}}


def _fits(interaction: Interaction, callback: int) -> bool:
    if callback == CHOICES or interaction.kind == AUTOCOMPLETE:
        return callback == CHOICES and interaction.kind == AUTOCOMPLETE
    if callback in (DEFERRED_UPDATE, UPDATE):
        return interaction.source is not None
    if callback == MODAL:
        return interaction.kind != MODAL_SUBMIT
    return callback in (MESSAGE, DEFERRED)


def _modal(data: Form) -> dict[str, Any]:
    """Return a checked modal: what was sent, and `shown`, its fields as a person sees them."""
    modal = modals.modal(data, ("data",))
    custom_id, title, rows = modal["custom_id"], modal["title"], modal["components"]
    inputs = [entry for row in rows for entry in inputs_of(row)]
    optional = ("placeholder", "value", "options", "default", "min_length", "max_length", "min_values", "max_values")
    fields = [
        {
            **{name: entry[name] for name in optional if name in entry},
            "custom_id": entry["custom_id"],
            "label": label,
            "type": entry["type"],
            "style": entry.get("style"),
            "required": entry["type"] != CHECKBOX and entry.get("required", True),
        }
        for label, entry in inputs
    ]
    shown = {"custom_id": custom_id, "title": title, "fields": fields}
    return {"custom_id": custom_id, "components": rows, "shown": shown}


def inputs_of(row: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return (label, input) of a modal's row: a Label (18) around one component, or an action row of text inputs."""
    if isinstance(row.get("component"), dict):
        return [(str(row.get("label", "")), row["component"])]
    return [(str(entry.get("label", "")), entry) for entry in row.get("components") or [] if "custom_id" in entry]
