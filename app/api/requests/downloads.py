"""Files that are read page by page: session or token and rights are checked again before each further page."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from gateways import gateways
from models import transaction
from models.db.session import AsyncSession
from services.accounts import sessions
from services.accounts.developers import api_tokens
from services.core.actors import Actor
from services.core.errors import NotSignedIn
from services.guilds import permissions


@asynccontextmanager
async def next_page(caller: Actor, server_id: int) -> AsyncIterator[AsyncSession]:
    """Begin the transaction that reads a further page for a caller who is still signed in and still runs the server.

    Of the rights, Discord's last answer counts for a moment (`services/guilds/permission_cache.py`). Raises
    NotSignedIn, ServerNotFound, ProviderUnavailable. The answer has begun, so that no other can replace it: the
    connection is closed before the answer's end, and the client sees that the file is incomplete.
    """
    async with transaction() as db:
        if caller.token is not None:
            signed_in = await api_tokens.is_valid(db, caller.token.id)
        else:
            signed_in = await sessions.is_open(db, caller.session_hash)
        if not signed_in:
            raise NotSignedIn
        await permissions.require_admin_still(db, gateways(), caller, server_id)
        yield db
