"""Sign deliveries and post them to the addresses that admins chose, through the guarded client."""

import hashlib
import hmac
from collections.abc import Sequence

from gateways.transport.connections import agent
from gateways.transport.errors import ProviderError
from gateways.transport.safe_fetch import Fetcher
from models import now
from services.accounts.developers.webhook_deliveries import Delivery, DeliveryTurn
from settings import settings

DEADLINE_SECONDS = 10.0
"""Longest wait for one receiver's answer."""


def signature(secrets: Sequence[str], at: int, body: bytes) -> str:
    """Return the header `Holdfast-Signature`, with one `v1` for each secret in force."""
    signed = [hmac.new(secret.encode(), b"%d." % at + body, hashlib.sha256).hexdigest() for secret in secrets]
    return ",".join([f"t={at}", *(f"v1={one}" for one in signed)])


class WebhookClient:
    """The client: posts only to public https addresses, in the sandbox also to this machine; follows no redirects."""

    def __init__(self, fetcher: Fetcher | None = None) -> None:
        self._fetcher = fetcher or Fetcher(agent=agent(), own_machine=settings().sandbox, deadline=DEADLINE_SECONDS)

    async def close(self) -> None:
        """Close the connections."""
        await self._fetcher.close()

    async def post(self, turn: DeliveryTurn, order: Delivery, body: bytes) -> str:
        """Post one body and return why that failed, or an empty string if the receiver accepted it."""
        headers = {
            "Holdfast-Signature": signature(turn.secrets, int(now().timestamp()), body),
            "Holdfast-Event": order.event,
            "Holdfast-Delivery": str(order.uuid),
        }
        try:
            status = await self._fetcher.deliver(turn.url, body, headers)
        except ProviderError as fault:
            return str(fault)
        return "" if 200 <= status < 300 else f"HTTP {status}"
