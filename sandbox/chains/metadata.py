"""`/metadata/<chain>/<contract>/<id>`: the target of a tokenURI, and the picture that it names."""

from collections.abc import Mapping
from html import escape

from aiohttp import web

from sandbox.base.faults import Answer
from sandbox.base.sandbox import Sandbox
from sandbox.chains.chain import Chain
from sandbox.chains.seeds import Collection

PATH = r"/metadata/{chain}/{contract:0x[0-9a-fA-F]{40}}/{token:[0-9]{1,78}}"


def routes(sandbox: Sandbox, chains: Mapping[str, Chain]) -> list[web.RouteDef]:
    """Return routes for the JSON and the picture of every token of a listed collection, minted or not."""

    def found(request: web.Request) -> Collection:
        chain = chains.get(request.match_info["chain"])
        listed = chain.collections.get(request.match_info["contract"].lower()) if chain else None
        if listed is None:
            raise web.HTTPNotFound(text="There is no such collection.")
        return listed

    async def describe(request: web.Request) -> web.StreamResponse:
        faulty = await sandbox.faults.apply(request, "metadata", ANSWERS)
        if faulty is not None:
            return faulty
        collection, token = found(request), str(int(request.match_info["token"]))
        return web.json_response(
            {
                "name": f"{collection.name} #{token}",
                "description": f"A token of {collection.name}.",
                "image": f"{sandbox.url}{request.path}/image.svg",
                "attributes": [
                    {"trait_type": kind, "value": value} for kind, value in collection.traits.get(token, {}).items()
                ],
            }
        )

    async def draw(request: web.Request) -> web.Response:
        collection, token = found(request), request.match_info["token"]
        text = picture(collection.contract, f"{collection.name} #{token[:12]}")
        return web.Response(text=text, content_type="image/svg+xml")

    return [web.get(PATH, describe), web.get(PATH + "/image.svg", draw)]


ANSWERS: dict[str, Answer] = {
    "429": lambda _: web.json_response({"error": "Too many requests"}, status=429, headers={"Retry-After": "1"}),
    "empty": lambda _: web.json_response({}),
    "malformed": lambda _: web.Response(text='{"name": "', content_type="application/json"),
}
"""The faulty answers of a metadata host, by the kind of fault."""


def picture(contract: str, title: str) -> str:
    """Return a plain picture of a token, coloured by its collection."""
    hue = int(contract[2:8], 16) % 360 if contract.startswith("0x") else sum(contract.encode()) % 360
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 200 200">'
        f'<rect width="200" height="200" fill="hsl({hue} 60% 80%)"/>'
        f'<circle cx="100" cy="85" r="50" fill="hsl({hue} 55% 45%)"/>'
        f'<text x="100" y="175" text-anchor="middle" font-family="sans-serif" font-size="16">'
        f"{escape(title)}</text></svg>"
    )
