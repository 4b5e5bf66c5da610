"""A Discord that accepts only role writes, at the limits of the real one.

`python -m benchmarks.support.fake_discord PORT` serves it. Ten writes in ten seconds a guild and fifty requests a
second a bot, counted as the sandbox counts them. `GET /tally` returns the counts, with `?least=5` once five writes
came, with `?honest=5` once five came in guilds where none is refused; `DELETE /tally` forgets them.
"""

import asyncio
import sys
import time
from collections import Counter

import orjson
from aiohttp import web

from sandbox.discord.answers.limits import Limits, Verdict, too_many
from sandbox.discord.rest.members import MEMBER_ROLE_WRITES

ROLE = "/guilds/{guild}/members/{user}/roles/{role}"
# Clients take a 429 without it for Cloudflare's, and give up.
VIA = {"Via": "1.1 fake-discord"}


class StandIn:
    """The limits and the counts."""

    def __init__(self) -> None:
        self.written = asyncio.Condition()
        self.refusing: dict[str, tuple[int, int]] = {}
        self.refusals: Counter[str] = Counter()
        self.forget()

    def forget(self) -> None:
        """Reset everything."""
        self.limits = Limits()
        self.requests = self.reads = self.refused = 0
        self.accepted: list[float] = []
        self.honest: list[float] = []
        self.different: set[tuple[str, ...]] = set()

    async def write(self, request: web.Request) -> web.Response:
        """Accept a role write, or refuse it by the limits."""
        self.requests += 1
        guild = request.match_info["guild"]
        if (refusal := self.refusing.get(guild)) is not None:
            code, every = refusal
            self.refusals[guild] += 1
            if self.refusals[guild] % every == 0:
                self.refused += 1
                return web.json_response({"message": "Refused", "code": code}, status=403, headers=VIA)
        token = request.headers.get("Authorization", "")
        verdict = self.limits.take_global(token, MEMBER_ROLE_WRITES)
        verdict = verdict or self.limits.take(token, MEMBER_ROLE_WRITES, request.match_info["guild"])
        if not verdict.allowed:
            return self._refuse(verdict)
        self.accepted.append(time.monotonic())
        if request.match_info["guild"] not in self.refusing:
            self.honest.append(time.monotonic())
        self.different.add((request.method, *request.match_info.values()))
        async with self.written:
            self.written.notify_all()
        return web.Response(status=204, headers=VIA | verdict.headers)

    def _refuse(self, verdict: Verdict) -> web.Response:
        self.refused += 1
        # Exactly this type: nextcord and discord.py read any other as text, and treat the answer as Cloudflare's.
        headers = {"Content-Type": "application/json"} | VIA | verdict.headers
        return web.Response(body=orjson.dumps(too_many(verdict)), status=429, headers=headers)

    async def refuse(self, request: web.Request) -> web.Response:
        """Refuse one of `every` role writes in a guild from now on, with this code."""
        self.refusing[request.query["guild"]] = int(request.query["code"]), int(request.query.get("every", 1))
        return web.Response()

    async def me(self, _: web.Request) -> web.Response:
        """Return the bot's own user, which clients request when they sign in."""
        return web.json_response({"id": "1", "username": "bot", "discriminator": "0000", "avatar": None}, headers=VIA)

    async def member(self, request: web.Request) -> web.Response:
        """Return a member without roles."""
        self.reads += 1
        user = {"id": request.match_info["user"], "username": "somebody", "discriminator": "0", "avatar": None}
        answer = {"user": user, "roles": [], "nick": None, "joined_at": "2026-01-01T00:00:00+00:00", "pending": False}
        return web.json_response(answer | {"flags": 0, "deaf": False, "mute": False}, headers=VIA)

    async def tally(self, request: web.Request) -> web.Response:
        """Return the counts; times are in seconds of this machine's monotonic clock."""
        if request.method == "DELETE":
            self.forget()
        least, honest = (int(request.query.get(name, 0)) for name in ("least", "honest"))
        async with self.written:
            await self.written.wait_for(lambda: len(self.accepted) >= least and len(self.honest) >= honest)
        said = {
            "requests": self.requests, "reads": self.reads, "refused": self.refused, "accepted": self.accepted,
            "honest": self.honest,
            "different": len(self.different),
        }  # fmt: skip
        return web.json_response(said)


def main() -> None:
    """Serve until killed."""
    here, app = StandIn(), web.Application()
    app.router.add_put(ROLE, here.write)
    app.router.add_delete(ROLE, here.write)
    app.router.add_get("/users/@me", here.me)
    app.router.add_get("/guilds/{guild}/members/{user}", here.member)
    app.router.add_post("/refuse", here.refuse)
    app.router.add_get("/tally", here.tally)
    app.router.add_delete("/tally", here.tally)
    web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), print=None, access_log=None)


if __name__ == "__main__":
    main()
