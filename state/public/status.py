"""The public status in lines."""

from dataclasses import dataclass

import reflex as rx

from locales import _
from services.health import public_status
from services.health.public_status import ChainStatus, ProviderStatus
from state.core.gate import public


@dataclass(frozen=True)
class StatusLineView:
    """One part of the product: `state` is good, warning, bad or unknown."""

    name: str
    state: str
    text: str


class PublicStatusState(rx.State):
    """The status page; anybody may open it."""

    loaded: bool = False
    state: str = public_status.UNKNOWN
    headline: str = ""
    version: str = ""
    checked: str = ""
    providers: list[StatusLineView] = []
    chains: list[StatusLineView] = []
    sweep: list[StatusLineView] = []
    """One line, or none without the database."""

    @public
    async def load(self) -> None:
        """Read the status; many readers cost no more than one."""
        view = await public_status.view()
        self.state, self.headline, self.version = view.state, view.headline, view.version
        self.checked = f"{view.checked_at:%H:%M:%S} UTC"
        self.providers, self.chains = _lines(view.providers), _lines(view.chains)
        last = view.last_sweep
        self.sweep = [] if last is None else [StatusLineView(_("Daily sweep"), last.state, last.text)]
        self.loaded = True


def _lines(parts: tuple[ProviderStatus, ...] | tuple[ChainStatus, ...]) -> list[StatusLineView]:
    return [StatusLineView(one.name, one.state, one.text) for one in parts]
