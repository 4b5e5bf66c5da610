"""`/magiceden/v2`: what Magic Eden's public API says about a wallet."""

from typing import TYPE_CHECKING

from aiohttp import web

from sandbox.marketplaces.accounts import Account, Accounts

if TYPE_CHECKING:
    from sandbox.house import Sandbox


def routes(sandbox: "Sandbox", accounts: Accounts) -> list[web.RouteDef]:
    """`GET /wallets/{address}` (external-apis §3.3): 400 for a wallet that is not known."""

    async def throttled(_: web.Request) -> web.Response:
        return web.json_response({"error": "Too Many Requests"}, status=429, headers={"Retry-After": "1"})

    async def empty(request: web.Request) -> web.Response:
        return _shown(Account(request.match_info["address"], "", ""))

    async def malformed(_: web.Request) -> web.Response:
        return web.Response(text='{"walletAddress": "', content_type="application/json")

    faulty = {"429": throttled, "empty": empty, "malformed": malformed}

    async def wallet(request: web.Request) -> web.StreamResponse:
        answer = await sandbox.faults.apply(request, "magiceden", faulty)
        if answer is not None:
            return answer
        fault = sandbox.faults.fault("magiceden")
        since = fault.since if fault and fault.kind == "stale" else None
        account = accounts.find(request.match_info["address"], since)
        if account is None:
            return web.json_response({"error": "wallet not found"}, status=400)
        return _shown(account)

    return [web.get("/magiceden/v2/wallets/{address}", wallet)]


def _shown(account: Account) -> web.Response:
    shown = {"walletAddress": account.address, "displayName": account.username, "bio": account.bio}
    required = ("walletAddress", "bio")
    return web.json_response({name: value for name, value in shown.items() if value or name in required})
