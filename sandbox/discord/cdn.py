"""`/discord/cdn`: icons and avatars, drawn from their ids so that no picture is stored."""

import hashlib
import struct
import zlib

from aiohttp import web

from sandbox.base.body import is_whole
from sandbox.discord.world.protocols import Discord

SIZES = tuple(1 << power for power in range(4, 13))
DEFAULT_AVATARS = 6
GRID = 8
DRAWN_AT_MOST = 256


class Cdn:
    """Pictures of guilds and users, and the default avatars."""

    def __init__(self, discord: Discord) -> None:
        self.discord = discord

    def routes(self) -> list[web.RouteDef]:
        """Return routes for icons, avatars and default avatars as PNG."""
        return [
            web.get("/discord/cdn/icons/{id}/{hash}.png", self._icon),
            web.get("/discord/cdn/avatars/{id}/{hash}.png", self._avatar),
            web.get("/discord/cdn/embed/avatars/{index}.png", self._default),
        ]

    async def _icon(self, request: web.Request) -> web.Response:
        guild = self.discord.world.guilds.get(request.match_info["id"])
        return _answer(request, guild.icon if guild else None)

    async def _avatar(self, request: web.Request) -> web.Response:
        user = self.discord.world.users.get(request.match_info["id"])
        return _answer(request, user.avatar if user else None)

    async def _default(self, request: web.Request) -> web.Response:
        index = request.match_info["index"]
        if index not in map(str, range(DEFAULT_AVATARS)):
            raise web.HTTPNotFound
        return _png_answer(request, f"default avatar {index}")


def _answer(request: web.Request, wanted: str | None) -> web.Response:
    if wanted is None or request.match_info["hash"] != wanted:
        raise web.HTTPNotFound
    return _png_answer(request, wanted)


def _png_answer(request: web.Request, seed: str) -> web.Response:
    size = request.query.get("size", "128")
    if not is_whole(size) or int(size) not in SIZES:
        raise web.HTTPBadRequest
    image = picture(seed, min(int(size), DRAWN_AT_MOST))
    return web.Response(body=image, content_type="image/png", headers={"Cache-Control": "public, max-age=31536000"})


def picture(seed: str, size: int) -> bytes:
    """Return a mirrored pattern of squares in the seed's colour, `size` pixels wide, as PNG."""
    digest = hashlib.sha256(seed.encode()).digest()
    ink, paper = bytes(b // 2 + 96 for b in digest[:3]), bytes((43, 45, 49))
    bits = int.from_bytes(digest[3:7], "big")
    rows: list[bytes] = []
    for y in range(size):
        line = y * GRID // size
        row = b"".join(
            ink if bits >> (line * GRID // 2 + min(x, GRID - 1 - x)) & 1 else paper
            for x in (at * GRID // size for at in range(size))
        )
        rows.append(b"\0" + row)
    header = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(b"".join(rows))), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
