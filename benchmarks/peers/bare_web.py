"""The lower bound for our web server: the same granian with a bare Starlette in it.

One JSON answer, one page of HTML, and a socket that echoes each message.
"""

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

PAGE = "<!doctype html><html lang=en><title>Bare</title><h1>Bare</h1>"


async def answer(_: Request) -> JSONResponse:
    """Return a JSON answer."""
    return JSONResponse({"status": "healthy"})


async def page(_: Request) -> HTMLResponse:
    """Return a page without styles or scripts."""
    return HTMLResponse(PAGE)


async def echo(socket: WebSocket) -> None:
    """Send each received message back."""
    await socket.accept()
    try:
        while True:
            await socket.send_text(await socket.receive_text())
    except WebSocketDisconnect:
        pass


app = Starlette(routes=[Route("/answer", answer), Route("/page", page), WebSocketRoute("/echo", echo)])
