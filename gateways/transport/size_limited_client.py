"""An HTTP client that keeps no answer larger than it may be."""

import logging
from typing import Any

import httpx

from gateways.transport.connections import read_at_most

log = logging.getLogger(f"holdfast.{__name__}")

LARGEST_ANSWER = 16_000_000
"""Bytes, once unpacked; the largest answer that we ask Discord for, a thousand members, has about 5 MB."""


class SizeLimitedClient(httpx.AsyncClient):
    """A client whose answers have at most LARGEST_ANSWER bytes; of a larger one, the body is empty.

    The status and the headers of such an answer still count: a change may have been made, or a limit be used up.
    """

    async def send(self, request: httpx.Request, *, stream: bool = False, **options: Any) -> httpx.Response:
        """Return the answer, read to its end unless `stream` is set.

        Raises httpx.DecodingError for an answer that is packed more than once, as `read_at_most` does.
        """
        answer = await super().send(request, stream=True, **options)
        if stream:
            return answer
        try:
            content = await read_at_most(answer, LARGEST_ANSWER)
        finally:
            await answer.aclose()
        if content is None:
            log.warning("answer too large status=%s host=%s", answer.status_code, request.url.host)
        unpacked = [(name, value) for name, value in answer.headers.multi_items() if name not in _OF_THE_BODY]
        return httpx.Response(answer.status_code, headers=unpacked, content=content or b"", request=request)


_OF_THE_BODY = frozenset({"content-encoding", "content-length", "transfer-encoding"})
"""Headers about the body as it was sent."""
