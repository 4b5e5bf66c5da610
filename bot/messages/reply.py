"""The bot's replies: embeds, with buttons whose custom ids carry all they need."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import nextcord

from locales import _
from services.core.discord_text import COLORS, LONGEST_DESCRIPTION, LONGEST_FIELD, cut

MOST_FIELDS = 25
MOST_CHARACTERS = 5500
"""Discord accepts 6000 characters in all embeds of a message together (docs/facts.md#discord-messages)."""
MORE_LINE = 30
"""Characters kept free for the line that says how many more lines there are."""
YES, NO = "1", "0"
"""The last part of a button's name where the button switches something on or off."""


@dataclass(frozen=True, slots=True)
class Button:
    """A button; `name` is its custom id, at most 100 characters."""

    name: str
    label: str
    style: nextcord.ButtonStyle = nextcord.ButtonStyle.secondary


@dataclass(frozen=True, slots=True)
class Choice:
    """A menu of at most 25 options `(value, label)`."""

    name: str
    placeholder: str
    options: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Reply:
    """A message that only the person sees. `text` is our markup; other people's texts in it are already escaped."""

    title: str
    text: str = ""
    tone: str = "info"
    fields: tuple[tuple[str, str], ...] = ()
    buttons: tuple[Button, ...] = ()
    choices: tuple[Choice, ...] = ()
    failed: bool = False
    """Whether the work did not succeed, so that it may be asked for again."""
    taken: frozenset[str] = frozenset()
    """The ids of the roles that the reply names as taken, so that no notice above it repeats them."""
    before: tuple[nextcord.Embed, ...] = field(default=())
    """Embeds above the reply: the person's pending notices."""
    start: int = 0
    """The place of the first field to show."""
    more: str = ""
    """The custom id of the button for the fields that do not fit; the place of the first one is added to it.

    Without it, the reply is about a server that the reader runs, and refers to the dashboard.
    """

    def after(self, embeds: Iterable[nextcord.Embed]) -> "Reply":
        """Return the reply with these embeds above it."""
        return replace(self, before=(*embeds, *self.before))

    def embeds(self) -> list[nextcord.Embed]:
        """Return the library's embeds, within Discord's limits."""
        main, end = self._main()
        if end < len(self.fields) and not self.more:
            main.set_footer(text=_("There is more than fits here: the dashboard shows everything."))
        return [*self.before, main]

    def _main(self) -> tuple[nextcord.Embed, int]:
        """Return the embed below the notices, and the place of the first field that does not fit into it."""
        above = sum(len(one) for one in self.before)
        title = cut(self.title, 256)
        room = min(LONGEST_DESCRIPTION - 600, MOST_CHARACTERS - above - len(title))
        main = nextcord.Embed(title=title, description=cut(self.text, room), color=COLORS[self.tone])
        used = above + len(main)
        for place, (name, value) in enumerate(self.fields[self.start :], self.start):
            name, value = cut(name, 256), cut(value, LONGEST_FIELD)
            if place - self.start == MOST_FIELDS or used + len(name) + len(value) > MOST_CHARACTERS:
                return main, place
            used += len(name) + len(value)
            main.add_field(name=name, value=value, inline=False)
        return main, len(self.fields)

    def view(self) -> nextcord.ui.View | None:
        """Return the buttons and menus; None if there are none."""
        buttons = self.buttons
        if self.more and (end := self._main()[1]) < len(self.fields):
            label = _("Show more ({count})").format(count=len(self.fields) - end)
            buttons = (*buttons, Button(f"{self.more}:{end}", label))
        if not buttons and not self.choices:
            return None
        made = nextcord.ui.View(timeout=None)
        for choice in self.choices:
            options = [nextcord.SelectOption(label=cut(label, 100), value=value) for value, label in choice.options]
            menu: nextcord.ui.StringSelect[nextcord.ui.View] = nextcord.ui.StringSelect(
                custom_id=choice.name, placeholder=choice.placeholder, options=options[:25]
            )
            made.add_item(menu)
        for button in buttons:
            made.add_item(nextcord.ui.Button(custom_id=button.name, label=button.label, style=button.style))
        # Mark it as finished from the start, so that the library neither keeps it nor handles its buttons:
        # `bot.interaction.presses` does, after a restart too.
        made.stop()
        return made


def lines(items: Sequence[str]) -> str:
    """Return the items as a list."""
    return "\n".join(f"• {item}" for item in items)


def fitting_lines(items: Sequence[str], longest: int) -> tuple[str, int]:
    """Return the first items as a list of at most `longest` characters that says how many more there are; and those."""
    shown = list(items)
    while len(shown) > 1 and len(lines(shown)) > longest - (MORE_LINE if len(shown) < len(items) else 0):
        shown.pop()
    left = len(items) - len(shown)
    if not left:
        return cut(lines(shown), longest), 0
    return lines([cut(shown[0], longest - MORE_LINE), *shown[1:], _("{count} more").format(count=left)]), left
