"""Files that are read page by page: the caller's rights are checked again before each further page."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from gateways import gateways
from models import transaction
from models.db.session import AsyncSession
from services.accounts.developers import tokens
from services.core.actors import Actor
from services.core.errors import NotSignedIn
from services.guilds import permissions


@asynccontextmanager
async def next_page(caller: Actor, server_id: int) -> AsyncIterator[AsyncSession]:
    """Begin the transaction that reads a further page for a caller who still runs the server.

    Raises NotSignedIn, ServerNotFound, ProviderUnavailable. The answer has begun, so that no other can replace it: the
    connection is closed before the answer's end, and the client sees that the file is incomplete.
    """
    async with transaction() as db:
        if caller.token is not None and not await tokens.is_valid(db, caller.token.id):
            raise NotSignedIn
        await permissions.require_admin_still(db, gateways(), caller, server_id)
        yield db
