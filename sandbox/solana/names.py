"""`/solana/names`: the Solana Name Service's REST proxy, where carol.sol is carol's wallet.

See docs/facts.md#solana-names.
"""

from aiohttp import web

from sandbox.base.faults import Answer
from sandbox.base.people import person
from sandbox.solana.chain import SolanaChain

OWNERS = {"carol": person("carol").wallets.solana}


def routes(solana: SolanaChain) -> list[web.RouteDef]:
    """Return the route `GET /resolve/{name}`, which takes the name without its ending."""

    answers: dict[str, Answer] = {
        "429": lambda _: web.Response(status=429, text="error code: 1015", headers={"Retry-After": "1"}),
        "empty": lambda _: _said("error", "Domain not found", 404),
        "malformed": lambda _: web.Response(text='{"s":"ok","result":', content_type="application/json"),
    }

    async def resolve(request: web.Request) -> web.StreamResponse:
        faulty = await solana.sandbox.faults.apply(request, "solana", answers)
        if faulty is not None:
            return faulty
        owner = OWNERS.get(request.match_info["name"].strip().lower())
        return _said("ok", owner) if owner else _said("error", "Domain not found", 404)

    return [web.get("/solana/names/resolve/{name}", resolve)]


def _said(state: str, result: str, status: int = 200) -> web.Response:
    return web.json_response({"s": state, "result": result}, status=status)
