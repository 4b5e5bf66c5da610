"""`/metadata/solana/<collection>/<asset>`: the target of an asset's json_uri, and the picture that it names."""

from aiohttp import web

from sandbox.chains.metadata import ANSWERS, picture
from sandbox.solana.assets import Asset
from sandbox.solana.chain import SolanaChain

PATH = "/metadata/solana/{contract:[1-9A-HJ-NP-Za-km-z]{32,44}}/{asset:[1-9A-HJ-NP-Za-km-z]{32,44}}"


def routes(solana: SolanaChain) -> list[web.RouteDef]:
    """Return routes for the JSON and the picture of every asset."""

    def found(request: web.Request) -> Asset:
        asset = solana.ledger.present.assets.get(request.match_info["asset"])
        if asset is None or request.match_info["contract"] not in (asset.collection, asset.id):
            raise web.HTTPNotFound(text="There is no such asset.")
        return asset

    async def describe(request: web.Request) -> web.StreamResponse:
        faulty = await solana.sandbox.faults.apply(request, "metadata", ANSWERS)
        if faulty is not None:
            return faulty
        asset = found(request)
        return web.json_response(
            {
                "name": asset.name,
                "description": f"{asset.name} on Solana.",
                "image": f"{solana.sandbox.url}{request.path}/image.svg",
                "attributes": [
                    {"trait_type": kind, "value": value}
                    for kind, value in solana.ledger.present.traits_of(asset).items()
                ],
            }
        )

    async def draw(request: web.Request) -> web.Response:
        asset = found(request)
        return web.Response(text=picture(asset.collection or asset.id, asset.name), content_type="image/svg+xml")

    return [web.get(PATH, describe), web.get(PATH + "/image.svg", draw)]
