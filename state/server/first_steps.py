"""The checklist above the tabs of a new server."""

from dataclasses import dataclass

import reflex as rx

from gateways import gateways
from locales import _
from models import transaction
from services.core.actors import Actor
from services.core.errors import NotFound, ProviderUnavailable
from services.health import first_steps
from services.health.first_steps import BOT as BOT
from services.health.first_steps import CHANNEL as CHANNEL
from services.health.first_steps import MEMBER as MEMBER
from services.health.first_steps import ORDER as ORDER
from services.health.first_steps import RULE as RULE
from state.core.gate import signed_in, writes
from state.core.retry import ask
from state.core.toasts import say
from state.dashboard.server_page import TABS, open_tab, page_of


@dataclass(frozen=True)
class StepView:
    """One step of the checklist; `next` marks the first that is left."""

    key: str
    title: str
    text: str
    done: bool
    next: bool


class FirstStepsState(rx.State):
    """The steps that are left; none once all are done, or for a server that hides them."""

    shown_for: int = 0
    """The server whose steps these are; the page waits for them, so that its tabs stay where they first appear."""
    steps: list[StepView] = []
    done: int = 0

    @signed_in
    async def load(self, actor: Actor) -> None:
        """Read the steps of the open server."""
        page = await open_tab(self, *TABS)
        if page is None:
            return

        if self.shown_for != page.server_id:
            self.steps = []
        try:
            found = await ask(lambda db: first_steps.view(db, gateways(), actor, page.server_id))
        except NotFound:
            page._lost()
        except ProviderUnavailable:
            pass  # The tab below shows the error. The steps of this server stay as they were last read.
        else:
            left = [step.key for step in found if not step.done]
            self.steps = [StepView(step.key, step.title, step.text, step.done, step.key == left[0]) for step in found]
            self.done = len(found) - len(left)
        finally:
            self.shown_for = page.server_id

    @writes
    async def hide(self, actor: Actor) -> None:
        """Hide the checklist of this server from all its admins."""
        page = await page_of(self, self.shown_for)
        async with transaction() as db:
            await first_steps.hide(db, gateways(), actor, page.server_id)
        self.steps = []
        await say(self, _("Checklist hidden"), _("The Health tab still says what a server lacks."))
