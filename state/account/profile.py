"""The signed-in person's profile."""

import reflex as rx

from gateways import gateways
from services.accounts import users
from services.core.actors import Actor
from state.core.gate import signed_in
from state.core.retry import ask
from state.core.session import display_name


class AccountState(rx.State):
    """The person's profile on the account screen."""

    loaded: bool = False
    failed: bool = False
    name: str = ""
    email: str = ""
    discord_username: str = ""
    user_id: int = 0
    avatar_url: str = ""
    connected: bool = False
    verified: bool = False
    wallets: int = 0

    @signed_in
    async def load(self, actor: Actor) -> None:
        """Read the profile."""
        self.failed = not self.loaded

        user = await ask(lambda db: users.view(db, gateways(), actor))
        self.name, self.email, self.user_id = display_name(user.username), user.email or "", user.id
        self.discord_username, self.connected = display_name(user.discord_username), user.is_discord_connected
        self.verified, self.wallets = user.is_verified, len(user.verified_wallets)
        self.avatar_url = users.avatar_url(user.discord_id, user.discord_avatar) or ""
        self.loaded, self.failed = True, False
