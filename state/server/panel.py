"""The panel's texts on the Verification channel tab: what an admin types, and how Discord will show it."""

from dataclasses import dataclass

import reflex as rx

from gateways import gateways
from locales import ENGLISH, _
from models import transaction
from services.core.actors import Actor
from services.core.errors import FieldRefused, HoldfastError
from services.guilds import panel, panel_markdown, verification_channel
from services.guilds.panel import PanelTexts
from services.guilds.verification_channel import ChannelsView
from services.runtime import rate_limits
from state.core.gate import signed_in, writes
from state.core.toasts import refuse, say
from state.dashboard.server_page import page_of

TITLE, TEXT, BUTTON, COLOR, LANGUAGE = "panelTitle", "panelText", "panelButton", "panelColor", "panelLanguage"
"""The names of the fields."""
LONGEST_TYPED = 6000
NO_FAULTS = {TITLE: "", TEXT: "", BUTTON: "", COLOR: ""}
_FIELDS = {"title": TITLE, "text": TEXT, "button": BUTTON, "color": COLOR}


@dataclass(frozen=True)
class RunView:
    """A part of a line and its style: `kind` is empty, `code`, `link`, `mention`, `spoiler` or `break`."""

    text: str
    kind: str
    look: str


@dataclass(frozen=True)
class BlockView:
    """A block of the preview, see `services.guilds.panel_markdown.Block`."""

    kind: str
    mark: str
    depth: int
    runs: list[RunView]


class PanelState(rx.State):
    """The fields as typed, what is wrong with them, and the preview."""

    shown_for: int = 0
    key: int = 0
    """Changes when we fill in the fields, so that the inputs are created again."""
    title: str = ""
    text: str = ""
    button: str = ""
    color: str = ""
    language: str = ENGLISH
    faults: dict[str, str] = NO_FAULTS
    """What is wrong with a field, by its name."""
    left: str = ""
    saving: bool = False
    shown_title: list[RunView] = []
    shown: list[BlockView] = []
    safe_name: str = ""
    safe: list[BlockView] = []
    my_roles: str = ""
    recheck: str = ""
    _bot_id: str = ""
    _server_name: str = ""
    _stored: PanelTexts | None = None

    def _open(self, server_id: int, seen: ChannelsView) -> None:
        """Show the stored texts, but keep texts that an admin has typed meanwhile."""
        self._bot_id, self._server_name = seen.bot_id, seen.server_name
        if self.shown_for != server_id or self._typed() == self._stored:
            self._fill(seen.panel)
        self._stored, self.shown_for = seen.panel, server_id

    def _fill(self, texts: PanelTexts) -> None:
        # New inputs lose text that somebody types at the same time, so they are created only if the texts differ.
        if texts != self._typed():
            self.title, self.text, self.button, self.color = texts.title, texts.text, texts.button, texts.color
            self.language = texts.language
            self.key += 1
        self._draw()

    def _typed(self) -> PanelTexts:
        return PanelTexts(self.title, self.text, self.button, self.color, self.language)

    def _draw(self) -> None:
        """Draw the preview, and note what Discord would refuse."""
        self.faults = dict(NO_FAULTS)
        texts = self._typed()
        try:
            texts = panel.checked(texts, self._server_name, self._bot_id)
        except FieldRefused as fault:
            self.faults[_FIELDS.get(fault.field, TEXT)] = fault.message
        filled = panel.filled(texts.text, texts, self._server_name)
        self.left = _("{count} of {most} characters").format(count=len(filled), most=panel.LONGEST_DESCRIPTION)
        # A text of placeholders becomes many times as long.
        title = panel.filled(texts.title, texts, self._server_name)[:LONGEST_TYPED]
        self.shown_title = _runs(panel_markdown.runs(title))
        self.shown = _blocks(filled[:LONGEST_TYPED])
        fixed = panel.fixed_texts(self._bot_id, self.language)
        self.safe_name, self.safe = fixed.safe_name, _blocks(fixed.safe_text)
        self.my_roles, self.recheck = fixed.my_roles, fixed.recheck

    # One handler for each field: a pause in typing is counted for each handler.
    @signed_in
    async def enter_title(self, actor: Actor, value: str) -> None:
        """Take the typed title."""
        self.title = value[:LONGEST_TYPED]
        self._draw()

    @signed_in
    async def enter_text(self, actor: Actor, value: str) -> None:
        """Take the typed text."""
        self.text = value[:LONGEST_TYPED]
        self._draw()

    @signed_in
    async def enter_button(self, actor: Actor, value: str) -> None:
        """Take the typed label."""
        self.button = value[:LONGEST_TYPED]
        self._draw()

    @signed_in
    async def choose_color(self, actor: Actor, value: str) -> None:
        """Take the chosen colour."""
        self.color = value[:7]
        self._draw()

    @signed_in
    async def choose_language(self, actor: Actor, value: str) -> None:
        """Take the chosen language. Default texts are now in that language; an admin's own texts stay as they are."""
        self._fill(panel.in_language(self._typed(), value))

    @signed_in
    async def restore(self, actor: Actor) -> None:
        """Fill in the default texts, without saving them."""
        self._fill(panel.default_texts(self.language))

    @writes
    async def save(self, actor: Actor, form: dict[str, str]):
        """Save the texts and change the panel that is posted."""
        # The person may have submitted before the pause after typing.
        typed = {name: text[:LONGEST_TYPED] for name, text in form.items()}
        self.title, self.text = typed.get(TITLE, self.title), typed.get(TEXT, self.text)
        self.button, self.color = typed.get(BUTTON, self.button), typed.get(COLOR, self.color)
        self._draw()
        if any(self.faults.values()):
            return
        self.saving = True
        yield
        try:
            page = await page_of(self, self.shown_for)
            await rate_limits.spend(rate_limits.RECHECKS, actor.user_id)
            async with transaction() as db:
                name = await verification_channel.change_panel(
                    db, gateways(), actor, page.server_id, self._typed(), self._stored
                )
            self._stored = panel.checked(self._typed(), self._server_name, self._bot_id)
            self._fill(self._stored)
            await say(
                self,
                _("Panel saved"),
                _("#{channel} shows it now.").format(channel=name)
                if name
                else _("It shows once the channel is created."),
            )
        except HoldfastError as fault:
            await refuse(self, _("Panel not saved"), fault.message)
        finally:
            self.saving = False


def _blocks(text: str) -> list[BlockView]:
    return [BlockView(one.kind, one.mark, one.depth, _runs(one.runs)) for one in panel_markdown.blocks(text)]


def _runs(found: tuple[panel_markdown.StyledRun, ...]) -> list[RunView]:
    return [RunView(one.text, one.kind, _look(one)) for one in found]


def _look(run: panel_markdown.StyledRun) -> str:
    """Return the run's CSS classes."""
    styles = (
        ("font-bold", run.bold), ("italic", run.italic), ("underline", run.underline), ("line-through", run.strike),
        (f"discord-{run.kind}", bool(run.kind)),
    )  # fmt: skip
    return " ".join(name for name, wanted in styles if wanted)
