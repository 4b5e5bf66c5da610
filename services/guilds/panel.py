"""The panel: one message with three buttons, whose ids never change, and the server's own words in it."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, cast

from sqlmodel import select

from gateways.discord.channels import Message
from gateways.transport.plain_text import one_line
from locales import ENGLISH, N_, _, best_of, first_of, listed, speaking
from models import Server, ServerMove
from models.db.session import AsyncSession
from services.core.discord_text import COLORS, LONGEST_DESCRIPTION, cut
from services.core.errors import FieldRefused
from services.core.untrusted_json import can_be_kept
from settings import settings

VERIFY, MY_ROLES, RECHECK = "holdfast:verify", "holdfast:roles", "holdfast:recheck"
"""The buttons' custom ids. They never change: panels posted years ago still send them."""
SAFETY = N_("We never DM you, never ask you to connect a wallet, never send links.")
LONGEST_TITLE, LONGEST_LABEL, LONGEST_EMBED = 256, 80, 6000
"""Discord's limits in characters (docs/facts.md#discord-messages); the last one is of all texts together."""
PLACEHOLDERS = ("{server}", "{bot}", "{button}")
"""Placeholders that a title and a text may contain: the server's name, the bot's name, and the button's label."""

_PLACEHOLDER = re.compile(r"\{[A-Za-z_]{1,40}\}")
_COLOR = re.compile(r"#[0-9A-Fa-f]{6}")
_PRIMARY, _SECONDARY = 1, 2
_ROW, _BUTTON = 1, 2


@dataclass(frozen=True, slots=True)
class PanelTexts:
    """What an admin can change: the title, the text, the first button's label, the colour as `#RRGGBB`, the language.

    The defaults, the other buttons and the part that no admin can change are in this language.
    """

    title: str
    text: str
    button: str
    color: str
    language: str = ENGLISH


def default_texts(language: str = ENGLISH) -> PanelTexts:
    """Return the texts of a panel in this language until an admin changes them."""
    with speaking(language):
        return PanelTexts(
            # Translators: the title of the panel, Discord's message with the buttons.
            title=_("Your NFTs, your roles"),
            # Translators: the text of the panel. **{button}** is the button's label; **My roles** and **Re-check** are
            # the labels of the two other buttons.
            text=_(
                "Some roles here belong to members who hold certain NFTs. Verify once that a wallet is yours, and you "
                "get your roles automatically. No wallet is ever connected.\n\n"
                "**How it works**\n"
                "1. Press **{button}** and enter your wallet's address.\n"
                "2. Show the code that only you see: in the bio of the wallet's profile, or in a transaction to "
                "yourself.\n"
                "3. Your roles arrive within moments. **My roles** says why you have each or not, **Re-check** checks "
                "again."
            ),
            # Translators: the label of the panel's first button.
            button=_("Verify"),
            color=f"#{COLORS['good']:06X}",
            language=best_of(language),
        )


def in_language(texts: PanelTexts, language: str) -> PanelTexts:
    """Return the texts for another language: defaults are translated, an admin's own texts stay unchanged."""
    old, new = default_texts(texts.language), default_texts(language)
    return replace(
        texts,
        title=new.title if texts.title == old.title else texts.title,
        text=new.text if texts.text == old.text else texts.text,
        button=new.button if texts.button == old.button else texts.button,
        language=new.language,
    )


def texts_of(server: Server) -> PanelTexts:
    """Return the texts of the server's panel."""
    default = default_texts(server.language)
    return PanelTexts(
        server.panel_title or default.title,
        server.panel_text or default.text,
        server.panel_button or default.button,
        server.panel_color or default.color,
        default.language,
    )


def keep(server: Server, texts: PanelTexts) -> None:
    """Write checked texts to the server's row. A text that equals the default is stored as None, to follow changes."""
    default = default_texts(texts.language)
    server.language = texts.language
    server.panel_title = texts.title if texts.title != default.title else None
    server.panel_text = texts.text if texts.text != default.text else None
    server.panel_button = texts.button if texts.button != default.button else None
    server.panel_color = texts.color if texts.color != default.color else None


def checked(texts: PanelTexts, server_name: str, bot_id: str) -> PanelTexts:
    """Return the texts without stray spaces, and with the default in place of an empty one.

    Raises FieldRefused (`title`, `text`, `button` or `color`) for an unknown placeholder, a character that cannot be
    stored, an invalid colour, or a text beyond Discord's limits.
    """
    default = default_texts(texts.language)
    given = PanelTexts(
        one_line(texts.title) or default.title,
        _lines(texts.text) or default.text,
        one_line(texts.button) or default.button,
        texts.color.strip().upper() or default.color,
        default.language,
    )
    for name in ("title", "text"):
        wrong = next((one for one in _PLACEHOLDER.findall(getattr(given, name)) if one not in PLACEHOLDERS), None)
        if wrong is not None:
            raise FieldRefused(
                name,
                _("{wrong} is not a placeholder. You can use {placeholders}.").format(
                    wrong=wrong, placeholders=", ".join(PLACEHOLDERS)
                ),
            )
    if not all(can_be_kept(one) for one in (given.title, given.text, given.button)):
        raise FieldRefused("text", _("The text has characters that cannot be stored."))
    if not _COLOR.fullmatch(given.color):
        raise FieldRefused("color", _("The colour is # and six hexadecimal digits, such as #2E9E6B."))
    for name, most, text in (
        ("title", LONGEST_TITLE, filled(given.title, given, server_name)),
        ("text", LONGEST_DESCRIPTION, filled(given.text, given, server_name)),
        ("button", LONGEST_LABEL, given.button),
    ):
        if len(text) > most:
            raise FieldRefused(
                name,
                _("Discord takes at most {most} characters here, and this has {length}.").format(
                    most=most, length=len(text)
                ),
            )
    embed = body(bot_id, given, server_name)["embeds"][0]
    safe = sum(len(part["name"]) + len(part["value"]) for part in embed["fields"])
    if len(embed["title"]) + len(embed["description"]) + safe > LONGEST_EMBED:
        raise FieldRefused(
            "text",
            _("Discord takes at most {longest_embed} characters in one message.").format(longest_embed=LONGEST_EMBED),
        )
    return given


def _lines(text: str) -> str:
    """Return a text of several lines without control characters, and with at most one empty line in a row."""
    lines = [
        "".join(one for one in line if one.isprintable() or one in "\u200c\u200d\t").rstrip()
        for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    ]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")


def filled(text: str, texts: PanelTexts, server_name: str) -> str:
    """Return the text with its placeholders replaced."""
    values = {"{server}": server_name, "{bot}": settings().bot_name, "{button}": texts.button}
    return _PLACEHOLDER.sub(lambda found: values.get(found[0], found[0]), text)


_MOST_ROLES = 20
"""How many roles one message names."""


async def move_notice(db: AsyncSession, server: Server) -> str:
    """Return the panel's notice about the server's open move; empty if no move is open."""
    found = await db.exec(select(ServerMove).where(ServerMove.server_id == server.id, ServerMove.state == "open"))
    move = found.first()
    if move is None:
        return ""
    with speaking(server.language):
        return move_text(server, move, await db.now())


def move_text(server: Server, move: ServerMove, at: datetime) -> str:
    """Return what members must do in an open move, and by when: in the reader's language, as Discord's markup.

    `at` is the present. After the move's date, the text names no date and says what still holds.
    """
    where = f"<#{server.verify_channel_id}>" if server.verify_channel_id else ""
    button = texts_of(server).button
    # Translators: {button} is the label of a button of the panel, {channel} a channel. Keep the **.
    how = _("Press **{button}** in {channel}").format(button=button, channel=where) if where else _("Type `/verify`")
    if move.until <= at:
        # Translators: {how} is "Press **Verify** in #verify" or "Type `/verify`".
        late = _(
            "{bot} will soon decide about {roles}. Do you have one of these roles? {how}, and show that a wallet is "
            "yours to keep it. No wallet is ever connected.\n\n"
            "Nobody loses one of these roles for lack of a wallet before an admin ends the move."
        )
        return late.format(bot=settings().bot_name, roles=roles_of_move(move), how=how)
    # Translators: {how} is "Press **Verify** in #verify" or "Type `/verify`". {until} is a date and time.
    said = _(
        "{bot} will decide about {roles}. Do you have one of these roles? {how}, and show that a wallet is yours, "
        "until {until}. No wallet is ever connected.\n\n"
        "Nobody loses one of these roles for lack of a wallet before then."
    )
    return said.format(
        bot=settings().bot_name, roles=roles_of_move(move), how=how, until=f"<t:{int(move.until.timestamp())}:F>"
    )


def roles_of_move(move: ServerMove) -> str:
    """Return the move's roles as Discord shows them, at most _MOST_ROLES by name."""
    return listed(first_of([f"<@&{role_id}>" for role_id in move.roles], _MOST_ROLES))


def body(bot_id: str, texts: PanelTexts, server_name: str, notice: str = "") -> dict[str, Any]:
    """Return the message in Discord's format (docs/facts.md#discord-messages); `notice` is about an open move."""
    labels = fixed_texts(bot_id, texts.language)
    buttons = (
        (VERIFY, texts.button, _PRIMARY),
        (MY_ROLES, labels.my_roles, _SECONDARY),
        (RECHECK, labels.recheck, _SECONDARY),
    )
    fields = [{"name": labels.safe_name, "value": labels.safe_text}]
    if notice:
        with speaking(texts.language):
            # Translators: above what the panel says about roles that move from another bot to ours.
            fields.insert(0, {"name": _("We are moving"), "value": notice})
    return {
        "embeds": [
            {
                # They were checked with the server's name of that time; a new name may be longer.
                "title": cut(filled(texts.title, texts, server_name), LONGEST_TITLE),
                "description": cut(filled(texts.text, texts, server_name), LONGEST_DESCRIPTION),
                "color": int(texts.color[1:], 16),
                "fields": fields,
            }
        ],
        "components": [
            {
                "type": _ROW,
                "components": [
                    {"type": _BUTTON, "style": style, "label": label, "custom_id": custom_id}
                    for custom_id, label, style in buttons
                ],
            }
        ],
    }


SAFE_NAME = N_("Stay safe")
"""The name of the part that no admin can change: it lets members recognise an impostor."""


@dataclass(frozen=True, slots=True)
class FixedTexts:
    """The texts that no admin can change: the part by which members recognise the bot, and the other buttons."""

    safe_name: str
    safe_text: str
    my_roles: str
    recheck: str


def fixed_texts(bot_id: str, language: str = ENGLISH) -> FixedTexts:
    """Return the panel's fixed texts in a language."""
    with speaking(language):
        recognised = _("This message is from {bot} (id {id}). A bot with another id is an impostor.")
        return FixedTexts(
            safe_name=_(SAFE_NAME),
            safe_text=f"{_(SAFETY)} {recognised.format(bot=settings().bot_name, id=bot_id)}",
            # Translators: the label of the panel's second button.
            my_roles=_("My roles"),
            # Translators: the label of the panel's third button.
            recheck=_("Re-check"),
        )


def is_panel(message: Message, bot_id: str) -> bool:
    """Return whether the message is a panel of ours, however old."""
    return message.author_id == bot_id and any(one.get("custom_id") == VERIFY for one in _buttons(message.components))


def fits(message: Message, wanted: Mapping[str, Any]) -> bool:
    """Return whether the message has the wanted content, apart from fields that Discord adds."""
    return _said(message.embeds) == _said(wanted["embeds"]) and _offered(message.components) == _offered(
        wanted["components"]
    )


def _said(embeds: Iterable[Any]) -> list[object]:
    return [
        (
            one.get("title"), one.get("description"), one.get("color"),
            [(part["name"], part["value"]) for part in one.get("fields", [])],
        )
        for one in embeds
    ]  # fmt: skip


def _offered(components: Iterable[Any]) -> list[tuple[object, object]]:
    return [(one.get("custom_id"), one.get("label")) for one in _buttons(components)]


def _buttons(components: Iterable[object]) -> list[Mapping[str, Any]]:
    rows = [cast("Mapping[str, Any]", row) for row in components if isinstance(row, Mapping)]
    return [button for row in rows for button in row.get("components", []) if isinstance(button, Mapping)]
