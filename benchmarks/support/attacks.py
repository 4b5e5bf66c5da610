"""The attacks of a stranger or a hostile account, each repeated for some seconds.

`python -m benchmarks.support.attacks NAME` runs one attack. It reads its Target as JSON and prints what it got. It
is a process of its own, so that the measured callers share nothing with it but the product and the
machine.
"""

import asyncio
import json
import os
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.typing import Origin

from tests.system.web.sockets import BOOT, HELLO, Socket, at

FORM = "reflex___state____state.state___rule_form___rule_form____rule_form_state."
PROOF = "reflex___state____state.state___account___wallet_proof____wallet_proof_state."
INVITE = "reflex___state____state.state___dashboard___invite____invite_state."
TOAST = "reflex___state____state.state___core___toasts____toast_state.show"
KILOBYTES_60 = 60_000
IDS = ",".join(map(str, range(12_000)))[:KILOBYTES_60]
DISTANT = [str(2**256 - 1 - 2 * number) for number in range(499)]
TABS = 20
WAIT = aiohttp.ClientTimeout(total=60)

Said = Counter[str]


@dataclass(frozen=True)
class Target:
    """The product, the account and the address of the attack, and its seconds."""

    url: str
    sandbox: str
    address: str
    seconds: float
    username: str
    session: str
    wallet: str
    admin: str
    """The session of a malicious server admin."""
    guild: str
    server_id: int
    contract: str
    role_id: str

    def headers(self, session: str) -> dict[str, str]:
        """Return the headers of a request, signed in unless the session is empty."""
        return {"X-Forwarded-For": self.address} | ({"Cookie": f"hf_session={session}"} if session else {})


Attack = Callable[[Target, Said], Awaitable[None]]


@asynccontextmanager
async def greeted(url: str, headers: Mapping[str, str], place: str = "/") -> AsyncIterator[Socket]:
    """The socket of a fresh tab at the product's address, greeted."""
    async with connect(
        f"{url.replace('http', 'ws', 1)}/_event/?EIO=4&transport=websocket&token=t{time.time_ns()}",
        additional_headers=headers, origin=Origin(url), max_size=None, ping_interval=None, proxy=None,
        open_timeout=60, close_timeout=1,
    ) as connection:  # fmt: skip
        made = Socket(connection)
        await made.until("0{")
        await made.send(f"{HELLO}{json.dumps({'event': {'name': BOOT, 'payload': {}, 'router_data': at(place)}})}")
        await made.until(HELLO)
        yield made


@asynccontextmanager
async def tab(target: Target, session: str = "", place: str = "/") -> AsyncIterator[Socket]:
    """The socket of a fresh tab of the attacker."""
    async with greeted(target.url, target.headers(session), place) as made:
        yield made


async def calls(target: Target, said: Said, session: str, some: Iterable[tuple[str, str, Any]]) -> None:
    """Make all of these calls at once: method, path and JSON of each."""
    async with aiohttp.ClientSession(
        headers=target.headers(session), connector=aiohttp.TCPConnector(limit=0), timeout=WAIT
    ) as client:
        asked = (
            client.request(method, target.url + path, json=body, allow_redirects=False) for method, path, body in some
        )
        await asyncio.gather(*(counted(said, one) for one in asked))


async def counted(said: Said, call: AbstractAsyncContextManager[aiohttp.ClientResponse]) -> None:
    """Make a call, and count its status or what went wrong."""
    try:
        async with call as answer:
            await answer.read()
        said[str(answer.status)] += 1
    except (aiohttp.ClientError, TimeoutError) as fault:
        said[type(fault).__name__] += 1


async def tabs(count: int, one: Callable[[], Awaitable[None]]) -> None:
    """Open so many tabs at once, each doing the same."""
    await asyncio.gather(*(one() for _ in range(count)))


def gets(*paths: str, times: int) -> list[tuple[str, str, Any]]:
    """Return so many GETs, of these paths in turn."""
    return [("GET", path, None) for path in islice(cycle(paths), times)]


async def token_list_by_socket(target: Target, said: Said) -> None:
    """Send one message of 60 KB with 12,000 token ids, as a visitor and as a member."""
    for session in ("", target.session):
        async with tab(target, session, f"/add-verification-rule?serverId={target.server_id}") as browser:
            await browser.event(f"{FORM}choose_type", {"number": 1, "value": "token_id"})
            await browser.event(f"{FORM}add_tokens", {"number": 1, "form": {"tokenEntry": IDS}})
            await browser.alive()
            said["sent"] += 1


async def token_list_by_call(target: Target, said: Said) -> None:
    """Send the same list in every field of a rule that takes one."""
    leaf = {"type": "token_id", "chain": "base", "contract": target.contract, "tokenIds": [IDS]}
    bodies = [rule(target, tokenIds=[IDS]), rule(target, tokenIds=IDS.split(",")), rule(target, expression=leaf)]
    paths = ("/api/verification-rules", "/api/verification-rules/preview")
    await calls(target, said, target.session, [("POST", path, body) for body in bodies for path in paths] * 2)


def rule(target: Target, **fields: Any) -> dict[str, Any]:
    """Return a rule about a token of the collection."""
    return {
        "ruleName": "Odd", "contractAddress": target.contract, "blockchain": "base", "verificationType": "token_id",
        "minTokens": 1, "roleId": target.role_id, "serverId": target.server_id, "tokenIds": ["1"], **fields,
    }  # fmt: skip


async def parallel_reads(target: Target, said: Said) -> None:
    """Make 300 reads at once about servers, the attacker's own and others."""
    own = [f"/api/verification-rules?serverId={target.server_id}", f"/api/servers/{target.server_id}/members"]
    await calls(target, said, target.session, gets(*own, "/api/servers/3/health", "/api/servers", times=300))


async def pages_of_many_tabs(target: Target, said: Said) -> None:
    """Load a server's pages in 20 tabs as fast as allowed."""

    async def one() -> None:
        async with tab(target, target.session, f"/dashboard/server/{target.server_id}") as browser:
            for part in islice(cycle(("rules", "members", "health", "log")), 90):
                await browser.event(BOOT, {}, f"/dashboard/server/{target.server_id}?tab={part}")
            await browser.alive()
            said["loads"] += 90

    await tabs(TABS, one)


async def look_again(target: Target, said: Said) -> None:
    """Send 150 events that request another check of the same bio."""
    async with tab(target, target.session, "/wallet-verification") as browser:
        await browser.event(f"{PROOF}enter_address", {"value": target.wallet})
        await browser.event(f"{PROOF}verify")
        for number in range(150):
            await browser.event(f"{PROOF}look_again", {"number": number % 5})
        await browser.alive()
        said["events"] += 150
        await asyncio.sleep(2)


async def unfinished_messages(target: Target, said: Said) -> None:
    """Open 8 sockets of visitors, each with 60 MiB of a message that never ends."""

    async def one() -> None:
        sent = 0

        def endless() -> Iterable[str]:
            nonlocal sent
            for _ in range(60):
                sent += 1
                yield "x" * 2**20

        async with tab(target) as browser:
            try:
                await asyncio.wait_for(_fragments(browser, endless()), 30)
                await asyncio.sleep(5)
            finally:
                said["MiB"] += sent

    await asyncio.gather(*(one() for _ in range(8)), return_exceptions=True)


async def _fragments(browser: Socket, parts: Iterable[str]) -> None:
    async def slowly() -> AsyncIterator[str]:
        for part in parts:
            yield part
        await asyncio.sleep(60)

    await browser._connection.send(slowly())


async def full_rule_form(target: Target, said: Said) -> None:
    """Fill in a form with 40 conditions, each with 499 ids or the longest trait, and send small events on it."""
    async with tab(target, target.session, f"/add-verification-rule?serverId={target.server_id}") as browser:
        for number in range(40):
            if number:
                await browser.event(f"{FORM}add_condition", {"group": 0})
            if number % 4 == 3:
                await browser.event(f"{FORM}choose_type", {"number": 1, "value": "trait"})
                await browser.event(f"{FORM}enter_trait_value", {"number": 1, "value": ">=" + " " * 500 + "a\nb"})
            else:
                await browser.event(f"{FORM}choose_type", {"number": 1, "value": "token_id"})
                ids = ",".join(str(int(one) - 2_000 * number) for one in DISTANT)
                await browser.event(f"{FORM}add_tokens", {"number": 1, "form": {"tokenEntry": ids}})
        for number in range(200):
            await browser.event(f"{FORM}negate", {"number": number % 40 + 1, "value": number % 2 == 0})
        await browser.alive()
        said["forms"] += 1


async def invite_watches(target: Target, said: Said) -> None:
    """Start 90 loops that check whether the bot has arrived."""
    async with tab(target, target.session, "/invite") as browser:
        for _ in range(90):
            await browser.event(f"{INVITE}watch")
        await browser.alive()
        said["events"] += 90
        await asyncio.sleep(3)


async def parallel_challenges(target: Target, said: Said) -> None:
    """Request 15 challenges at once for one address."""
    await calls(target, said, target.session, gets(f"/api/wallet-challenge?address={target.wallet}", times=15))


async def previews(target: Target, said: Said) -> None:
    """Search for a member's token by previews as an admin, 20 at once."""
    bodies = [rule(target, tokenIds=[f"{number * 500}-{number * 500 + 499}"]) for number in range(20)]
    await calls(target, said, target.admin, [("POST", "/api/verification-rules/preview", body) for body in bodies])


async def malformed_chunks(target: Target, said: Said) -> None:
    """Send 200 bodies whose encoding is not the declared one."""
    head = f"POST /api/auth/logout HTTP/1.1\r\nHost: {urlsplit(target.url).netloc}\r\nX-Forwarded-For: {target.address}"
    await raw(target, said, [f"{head}\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n".encode()] * 200)


async def long_paths(target: Target, said: Said) -> None:
    """Request 100 addresses of 60 KB, which a log must not keep."""
    paths = [f"/api/{'a' * KILOBYTES_60}", f"/{'%1b[2J' * 10_000}"] * 50
    rest = f"HTTP/1.1\r\nHost: {urlsplit(target.url).netloc}\r\nX-Forwarded-For: {target.address}\r\n\r\n"
    await raw(target, said, [f"GET {path} {rest}".encode() for path in paths])


async def raw(target: Target, said: Said, requests: Iterable[bytes]) -> None:
    """Send raw bytes, each on a connection of its own."""
    host, port = urlsplit(target.url).hostname, urlsplit(target.url).port

    async def one(request: bytes) -> None:
        try:
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(request)
            line = await asyncio.wait_for(reader.readline(), 30)
            said[line.decode("latin-1").strip()[9:12] or "closed"] += 1
            writer.close()
        except (OSError, TimeoutError) as fault:
            said[type(fault).__name__] += 1

    await asyncio.gather(*(one(request) for request in requests))


async def large_events_of_many_tabs(target: Target, said: Said) -> None:
    """Send 90 events of 60 KB in each of 60 visitors' tabs."""
    text = "a" * KILOBYTES_60

    async def one() -> None:
        async with tab(target) as browser:
            for _ in range(90):
                await browser.event(TOAST, {"title": text, "text": "", "destructive": False})
            await browser.alive()
            said["events"] += 90

    await tabs(60, one)


async def fresh_tabs(target: Target, said: Said) -> None:
    """Open 20 visitors' tabs, fill each with 60 KB and leave, as fast as an address may open them."""

    async def one() -> None:
        async with tab(target, place=f"/{'a' * 4_000}") as browser:
            await browser.event(TOAST, {"title": "a" * KILOBYTES_60, "text": "", "destructive": False})
            await browser.alive()
            said["tabs"] += 1

    await tabs(TABS, one)


async def sign_ins(target: Target, said: Said) -> None:
    """Sign in 100 times with a code that Discord never gave."""
    await calls(target, said, "", gets("/api/auth/discord", "/api/auth/discord/callback?code=a&state=b", times=100))


async def long_texts(target: Target, said: Said) -> None:
    """Send 60 KB in every text of every call that changes something."""
    text = "a." * (KILOBYTES_60 // 2)
    fields = ("ruleName", "contractAddress", "blockchain", "verificationType", "roleId", "traitType", "traitValue")
    bodies: list[tuple[str, str, Any]] = [
        ("POST", "/api/verification-rules", rule(target, **{field: text})) for field in fields
    ]
    bodies += [
        ("POST", "/api/collection/parse", {"url": f"https://opensea.io/{text}"}),
        ("POST", "/api/verify-wallet", {"walletAddress": text, "transactionHash": text[:100]}),
        ("POST", "/api/servers", {"discordServerId": text, "serverName": "a"}),
        ("POST", "/api/servers", {"discordServerId": "1", "serverName": text}),
        ("PUT", f"/api/servers/{target.server_id}/protection/members/1", {"note": text}),
        ("GET", f"/api/servers/{target.server_id}/members?query={text[:KILOBYTES_60]}", None),
        ("GET", f"/api/servers/{target.server_id}/events?member={text[:KILOBYTES_60]}", None),
    ]
    await calls(target, said, target.session, bodies * 4)
    await calls(target, said, target.admin, bodies * 2)


async def downloads(target: Target, said: Said) -> None:
    """Download everything 40 times at once as an admin."""
    base = f"/api/servers/{target.server_id}"
    files = (f"{base}/members.csv", f"{base}/events.csv", f"{base}/export", "/api/me/export")
    await calls(target, said, target.admin, gets(*files, times=40))


async def parallel_health(target: Target, said: Said) -> None:
    """Request the health 1,000 times at once."""
    await calls(target, said, "", gets("/health", times=1_000))


async def parallel_documents(target: Target, said: Said) -> None:
    """Make 500 reads at once of public documents."""
    paths = ("/api/openapi.json", "/", "/api/docs", "/help-center", "/dashboard", "/robots.txt", "/api/nothing")
    await calls(target, said, "", gets(*paths, times=500))


async def odd_pages(target: Target, said: Said) -> None:
    """Request 500 addresses that no page has."""
    places = (f"/x/{number}/../%2e%2e/{'a' * (number % 900)}" for number in range(500))
    await calls(target, said, "", [("GET", place, None) for place in places])


async def own_data(target: Target, said: Said) -> None:
    """Make 400 reads at once of the attacker's own data, which ask no provider."""
    paths = ("/api/wallet-verifications", "/api/me/sessions", "/api/me/servers", "/api/auth/user", "/api/me/forget")
    await calls(target, said, target.session, gets(*paths, times=400))


async def commands(target: Target, said: Said) -> None:
    """Use commands in Discord as one member as fast as possible, 25 at once."""
    names = islice(cycle(("verify", "why", "recheck", "wallets", "rules")), 25)
    about = {"guild": target.guild, "user": target.username, "wait": 10, "kind": "command"}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=WAIT) as client:
        asked = (client.post(f"{target.sandbox}/control/interactions", json={**about, "name": one}) for one in names)
        await asyncio.gather(*(counted(said, one) for one in asked))


ATTACKS: dict[str, Attack] = {
    one.__name__: one
    for one in (
        token_list_by_socket, token_list_by_call, parallel_reads, pages_of_many_tabs, look_again, unfinished_messages,
        full_rule_form, invite_watches, parallel_challenges, previews, malformed_chunks, long_paths,
        large_events_of_many_tabs, fresh_tabs, sign_ins, long_texts, downloads, parallel_health, parallel_documents,
        odd_pages, own_data, commands,
    )
}  # fmt: skip


async def main() -> None:
    """Run one attack in waves until its time is over."""
    target, said = Target(**json.loads(sys.stdin.read())), Counter[str]()
    ends = time.monotonic() + target.seconds
    while (left := ends - time.monotonic()) > 0:
        try:
            async with asyncio.timeout(left):
                await ATTACKS[sys.argv[1]](target, said)
            said["waves"] += 1
        except TimeoutError:
            said["wave cut off"] += 1
        except (ConnectionClosed, InvalidHandshake, OSError) as fault:
            said[str(fault)[:60] or type(fault).__name__] += 1
            await asyncio.sleep(0.2)
    print(json.dumps(said), flush=True)
    # Otherwise a wave's remaining sockets would close one by one, each waiting for room to say so.
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(main())
