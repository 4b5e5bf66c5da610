"""A web process like the product's, with a call that is never answered and one that keeps the event loop busy.

granian serves it in test_shutdown.py.
"""

import asyncio
import os
import time
from typing import Any

from app.http import shutdown
from app.http.shutdown import Leaving


def make() -> Any:
    """Return the app; it prints a line when its lifespan ends in order."""
    shutdown.STUCK_SECONDS = float(os.environ["STUCK_SECONDS"])
    hooks = Leaving.on_signals()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            while True:
                message = await receive()
                if message["type"] == "lifespan.shutdown":
                    hooks.__exit__(None, None, None)
                    print("connections closed", flush=True)
                else:
                    hooks.__enter__()
                await send({"type": f"{message['type']}.complete"})
        elif scope["path"] == "/never":
            print("asked", flush=True)
            await asyncio.Event().wait()
        elif scope["path"] == "/busy":
            print("asked", flush=True)
            time.sleep(60)  # noqa: ASYNC251 - the event loop is to be busy
        else:
            await send({"type": "http.response.start", "status": 204, "headers": []})
            await send({"type": "http.response.body", "body": b""})

    return Leaving(app)
