"""The message on the authentication error page."""

import reflex as rx

from locales import N_, _
from state.core.gate import public

AUTH_FAILED = N_("Discord authentication failed.")
NOT_CONFIGURED = N_("Discord OAuth configuration needs to be updated.")


class ProblemState(rx.State):
    """The message for the error code in the URL."""

    sentence: str = ""

    @public
    def load(self) -> None:
        """Choose the message; any code but `auth_failed` means a wrong configuration."""
        code = self.router.url.query_parameters.get("error", "")
        self.sentence = _(AUTH_FAILED) if code == "auth_failed" else _(NOT_CONFIGURED)
