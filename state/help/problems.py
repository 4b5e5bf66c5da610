"""Which sentence the authentication error page shows."""

import reflex as rx

from state.core.gate import public

AUTH_FAILED = "Discord authentication failed."
NOT_CONFIGURED = "Discord OAuth configuration needs to be updated."


class ProblemState(rx.State):
    """The sentence for the code in the address."""

    sentence: str = ""

    @public
    def load(self) -> None:
        """Anything but `auth_failed` is a matter of configuration."""
        code = self.router.url.query_parameters.get("error", "")
        self.sentence = AUTH_FAILED if code == "auth_failed" else NOT_CONFIGURED
