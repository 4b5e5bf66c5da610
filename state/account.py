"""A person's own profile."""

import reflex as rx

from gateways import gateways
from models import transaction
from services import users
from services.actors import Actor
from settings import settings
from state.gate import signed_in
from state.session import display_name


class AccountState(rx.State):
    """What the account screen shows of the person."""

    loaded: bool = False
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
        async with transaction() as db:
            user = await users.view(db, gateways(), actor)
        self.name, self.email, self.user_id = display_name(user.username), user.email or "", user.id
        self.discord_username, self.connected = user.discord_username, user.is_discord_connected
        self.verified, self.wallets = user.is_verified, len(user.verified_wallets)
        picture = f"avatars/{user.discord_id}/{user.discord_avatar}.png?size=128" if user.discord_avatar else ""
        self.avatar_url = f"{settings().discord_cdn_url}/{picture}" if picture else ""
        self.loaded = True
