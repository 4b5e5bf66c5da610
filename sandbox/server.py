"""The HTTP server of the sandbox: what is logged, and the routes of every part."""

from collections.abc import AsyncIterator, Awaitable, Callable

from aiohttp import web

from sandbox import console, control
from sandbox.assembly import WholeSandbox
from sandbox.base.refusal import Refusal
from sandbox.base.this_machine_only import only_this_machine
from sandbox.base.traffic import HUNG_UP, NOTED, RPC_METHOD

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
SANDBOX = web.AppKey("sandbox", WholeSandbox)
LISTING = ("opensea", "magiceden", "alchemy", "metadata")
ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#4752c4"/>'
    '<path d="M5 22h22l-3 5H8z" fill="#fff"/><path d="M9 20l3-9h8l3 9z" fill="#f5d08a"/></svg>'
)
"""The icon that browsers show beside the titles of people's pages: a heap of sand in a box."""


def build_app(sandbox: WholeSandbox) -> web.Application:
    """Return the application with every part's routes; the sandbox starts and stops with the application."""
    app = web.Application(
        middlewares=[only_this_machine, _logged, _discords_edge, _route_faults, _refusals, _listed],
        client_max_size=16 * 1024**2,
    )
    app[SANDBOX] = sandbox
    for part in sandbox.parts():
        app.add_routes(part.routes())
    app.add_routes(control.routes(sandbox))
    app.add_routes(console.routes(sandbox))
    app.router.add_get("/", _home)
    app.router.add_get("/favicon.ico", _icon)

    async def life(_: web.Application) -> AsyncIterator[None]:
        await sandbox.start()
        yield
        await sandbox.stop()

    app.cleanup_ctx.append(life)
    return app


@web.middleware
async def _listed(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer for a marketplace or a host of metadata only while every chain's collections are complete."""
    chains = request.app[SANDBOX].chains
    if chains is not None and _places(request.path)[0] in LISTING:
        await chains.restarted()
    return await handler(request)


def target_of(path: str) -> str | None:
    """Return the provider of a path, by its name in the fault table; None for control and for people's pages."""
    first, second = _places(path)
    if first == "discord":
        return "gateway" if second == "gateway" else "discord"
    if first in ("rpc", "rpc2"):
        return f"{first}:{second}"
    if (first, second) in (("opensea", "api"), ("magiceden", "v2")):
        return first
    return first if first in ("solana", "metadata", "alchemy") else None


def _places(path: str) -> tuple[str, str]:
    """Return the first two parts of a path; empty texts where there are none, as in `OPTIONS *`."""
    _, first, second, *_ = [*path.split("/", 3), "", ""]
    return first, second


async def _home(_: web.Request) -> web.Response:
    raise web.HTTPFound("/console")


async def _icon(_: web.Request) -> web.Response:
    """Return the icon; browsers request it unasked, and each page would log an error without it."""
    return web.Response(text=ICON, content_type="image/svg+xml")


@web.middleware
async def _logged(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Log every request to a provider, unless its handler did (NOTED); a handler may set RPC_METHOD first."""
    target = target_of(request.path)
    if target is None:
        return await handler(request)
    sandbox = request.app[SANDBOX]
    note = None
    if sandbox.faults.active(target) == "slow" and not target.startswith("rpc"):
        # The chains' front ends note every request on arrival. Others are noted then only here, since the client of a
        # slow provider gives up long before the answer.
        note = sandbox.traffic.note(target, request.method, request.path_qs, 0, request.get(RPC_METHOD))
    status, size = 0, 0
    try:
        response = await handler(request)
        status, size = response.status, _size(response)
        return response
    except web.HTTPException as answer:
        status, size = answer.status, _size(answer)
        raise
    except Exception:
        status = 500  # an error of our own, which the server below answers
        raise
    finally:
        status = 0 if request.get(HUNG_UP) else status
        if note is not None:
            sandbox.traffic.answered(note, status, size)
        elif not request.get(NOTED):
            sandbox.traffic.note(target, request.method, request.path_qs, status, request.get(RPC_METHOD), size)


@web.middleware
async def _discords_edge(request: web.Request, handler: Handler) -> web.StreamResponse:
    if not request.path.startswith("/discord/api/"):
        return await handler(request)
    edge = request.app[SANDBOX].discord.edge
    if edge.shut_for() > 0:
        return edge.refusal()
    answer = await handler(request)
    edge.note(answer)
    return answer


@web.middleware
async def _route_faults(request: web.Request, handler: Handler) -> web.StreamResponse:
    target = target_of(request.path)
    if target is None:
        return await handler(request)
    return await request.app[SANDBOX].faults.routes.apply(request, target, handler)


def _size(response: web.StreamResponse) -> int:
    body = response.body if isinstance(response, web.Response) else None
    return len(body) if isinstance(body, bytes | bytearray) else 0


def _in_json(request: web.Request, answer: web.HTTPError) -> web.Response:
    """Return the answer to a control call that the web server itself refuses."""
    if isinstance(answer, web.HTTPMethodNotAllowed):
        message = f"This control call takes {' or '.join(sorted(answer.allowed_methods - {'HEAD'}))}."
    elif isinstance(answer, web.HTTPNotFound):
        message = f"There is no control call {request.path}."
    else:
        message = f"{answer.reason}."
    kept = {name: answer.headers[name] for name in ("Allow",) if name in answer.headers}
    return web.json_response({"message": message}, status=answer.status, headers=kept)


@web.middleware
async def _refusals(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except Refusal as refusal:
        return web.json_response({"message": refusal.message}, status=refusal.status)
    except web.HTTPError as answer:
        if not request.path.startswith("/control/"):
            raise
        return _in_json(request, answer)
    except ConnectionResetError:
        # The client hung up while sending its request: no answer reaches it, and nothing is wrong here.
        return web.Response(status=400)
