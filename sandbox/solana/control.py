"""`/control/chains/solana/…`: the control calls that change Solana's ledger."""

import re
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from sandbox.base.body import Body, fields, flag, is_whole, optional_text, text, trait_values
from sandbox.base.refusal import Refusal
from sandbox.chains.seeds import Collection
from sandbox.solana import coins
from sandbox.solana.assets import AUTHORITY, INTERFACES, STANDARD, Record, mint_named, mint_of
from sandbox.solana.chain import SolanaChain
from sandbox.solana.coins import SplCoin
from sandbox.solana.keys import address_of, is_address
from sandbox.solana.ledger import Ledger

MOST_SLOTS = 500
LONGEST_MEMO = 566
"""The bytes that fit into a transaction with one signer."""
_SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_FLAGS = ("compressed", "frozen", "verified")

Act = Callable[[Ledger, Body], dict[str, Any]]
Handler = Callable[[web.Request], Awaitable[web.Response]]


def routes(solana: SolanaChain) -> list[web.RouteDef]:
    """Return one route for all actions."""

    async def act(request: web.Request) -> web.Response:
        action = ACTIONS.get(request.match_info["action"])
        if action is None:
            raise Refusal(404, f"No action on solana is called {request.match_info['action']!r}: {', '.join(ACTIONS)}.")
        return web.json_response(action(solana.ledger, await fields(request)))

    return [web.post("/control/chains/solana/{action}", act)]


def deploy(ledger: Ledger, body: Body) -> dict[str, Any]:
    """Deploy a collection: `{standard, name, slug}`, and `interface` ("MplCoreAsset" for a Core collection).

    For a coin (SPL, or SPL2022 for Token-2022) also `{decimals?, symbol?}`.
    """
    standard, name, slug = text(body, "standard"), text(body, "name"), text(body, "slug")
    if standard not in (STANDARD, *coins.STANDARDS):
        raise Refusal(400, f"standard is one of {', '.join((STANDARD, *coins.STANDARDS))}.")
    if not _SLUG.fullmatch(slug):
        raise Refusal(400, "slug is made of lower-case letters, digits and single hyphens.")
    if any(one.slug == slug for one in (*ledger.present.collections.values(), *ledger.present.coins.values())):
        raise Refusal(409, f"solana has a collection {slug} already.")
    if standard in coins.STANDARDS:
        decimals = coins.decimals_in(body.get("decimals"))
        if decimals is None:
            raise Refusal(400, f"decimals is a number of at most {coins.MOST_DECIMALS}.")
        symbol = optional_text(body, "symbol") or "".join(part[0] for part in slug.split("-")).upper()
        coin = {"contract": address_of(f"coin {slug}"), "name": name, "symbol": symbol, "slug": slug}
        coin |= {"standard": standard, "decimals": decimals}
        done = ledger.keep({"kind": "coin", "coin": coin, "signers": [AUTHORITY], **_memo(body)})
        return {"contract": coin["contract"], "hash": done["signature"], "block": done["slot"]}
    parent = "MplCoreCollection" if _interface(body) == "MplCoreAsset" else "V1_NFT"
    record: Record = {"kind": "deploy", "contract": address_of(f"collection {slug}"), "name": name, "slug": slug}
    done = ledger.keep({**record, "interface": parent, "signers": [AUTHORITY], **_memo(body)})
    return {"contract": done["contract"], "hash": done["signature"], "block": done["slot"]}


def mint(ledger: Ledger, body: Body) -> dict[str, Any]:
    """Mint an asset: `{contract, to, token_id?}`.

    `token_id` is an address or a number that stands for one; by default it is the next number. `interface`,
    `compressed`, `frozen`, `delegate` and `verified` say what is special about it. For a coin `{contract, amount, to}`
    in base units.
    """
    if (coin := ledger.coin(text(body, "contract"))) is not None:
        to, units = _address(body, "to"), _units(body)
        if coin.supply + units > coins.MOST_UNITS:
            raise Refusal(409, "The chain refuses this: there would be more of it than 64 bits can say.")
        return _moved(ledger, coin, {to: units}, body)
    collection, to = ledger.collection(text(body, "contract")), _address(body, "to")
    token = optional_text(body, "token_id") or str(_next_number(ledger, collection))
    id_ = mint_named(collection.contract, token)
    if id_ is None:
        raise Refusal(400, "token_id is a mint address, or a decimal number that stands for one.")
    if id_ in ledger.present.assets:
        raise Refusal(409, f"The chain refuses this: {id_} was minted before.")
    name = f"{collection.name} #{token[:4] if id_ == token else token}"
    parent = ledger.present.assets[collection.contract].interface
    usual = "MplCoreAsset" if parent == "MplCoreCollection" else "ProgrammableNFT"
    asset = {"id": id_, "name": name, "owner": to, "collection": collection.contract, **_special(body)}
    asset.setdefault("interface", "V1_NFT" if asset.get("compressed") else usual)
    return _done(ledger, {"kind": "mint", "asset": asset, "signers": [AUTHORITY], "others": [to, id_]}, body)


def transfer(ledger: Ledger, body: Body) -> dict[str, Any]:
    """Transfer an asset: `{contract, token_id, from?, to}`.

    The asset is no longer frozen or delegated, unless the body says so again. For a coin `{contract, amount, from?,
    to}` in base units.
    """
    if (coin := ledger.coin(text(body, "contract"))) is not None:
        to, units, sender = _address(body, "to"), _units(body), _coin_holder(coin, body)
        changes = {sender: 0} if sender == to else {sender: -units, to: units}
        return _moved(ledger, coin, changes, body)
    collection, to = ledger.collection(text(body, "contract")), _address(body, "to")
    asset = ledger.asset(collection, text(body, "token_id"))
    sender = _owner(body, asset.owner)
    changed = {"owner": to, "frozen": False, "delegate": None, **_special(body)}
    record = {"kind": "change", "asset": asset.id, "to": changed, "signers": [sender], "others": [to, asset.id]}
    return _done(ledger, record, body)


def burn(ledger: Ledger, body: Body) -> dict[str, Any]:
    """Burn an asset: `{contract, token_id, from?}`; for a coin `{contract, amount, from?}` in base units."""
    if (coin := ledger.coin(text(body, "contract"))) is not None:
        return _moved(ledger, coin, {_coin_holder(coin, body): -_units(body)}, body)
    collection = ledger.collection(text(body, "contract"))
    asset = ledger.asset(collection, text(body, "token_id"))
    sender = _owner(body, asset.owner)
    changed = {"burnt": True, "frozen": False, "delegate": None}
    record = {"kind": "change", "asset": asset.id, "to": changed, "signers": [sender], "others": [asset.id]}
    return _done(ledger, record, body)


def mark(ledger: Ledger, body: Body) -> dict[str, Any]:
    """Mark an asset as listed, staked, disowned, …

    The body is `{contract, token_id}` and `frozen`, `delegate`, `verified` or `interface`.
    """
    collection = ledger.collection(text(body, "contract"))
    asset = ledger.asset(collection, text(body, "token_id"))
    record = {"kind": "change", "asset": asset.id, "to": _special(body), "signers": [asset.owner], "others": [asset.id]}
    return _done(ledger, record, body)


def traits(ledger: Ledger, body: Body) -> dict[str, Any]:
    """Replace all traits of a token: `{contract, token_id, traits}`."""
    collection = ledger.collection(text(body, "contract"))
    asset, named = ledger.asset(collection, text(body, "token_id")), trait_values(body)
    ledger.keep({"kind": "traits", "contract": collection.contract, "asset": asset.id, "traits": named})
    return {"traits": named}


def send(ledger: Ledger, body: Body) -> dict[str, Any]:
    """Send lamports: `{from, to?, value_wei?, memo?}`; `value_wei` is in lamports.

    With `fail` the transaction fails; with `final: false` it becomes final only as its slots pass.
    """
    sender = _address(body, "from")
    to = _address(body, "to") if body.get("to") is not None else sender
    value = optional_text(body, "value_wei") or "0"
    if not is_whole(value) or int(value) >= 2**64:
        raise Refusal(400, "value_wei is a number of lamports of at most 64 bits.")
    if ledger.present.lamports.get(to, 0) + int(value) >= 2**64:
        raise Refusal(409, "The chain refuses this: nobody can have more lamports than 64 bits can say.")
    record: Record = {"kind": "send", "signers": [sender], "others": [] if to == sender else [to]}
    record |= {"lamports": int(value) if to != sender else 0, "failed": flag(body, "fail", False)}
    return _done(ledger, record, body, final=flag(body, "final", True))


def mine(ledger: Ledger, body: Body) -> dict[str, Any]:
    """Let slots pass at once: `{blocks}`."""
    blocks = text(body, "blocks")
    if not is_whole(blocks) or not 0 < int(blocks) <= MOST_SLOTS:
        raise Refusal(400, f"blocks is at least 1 and at most {MOST_SLOTS}.")
    ledger.pass_by(int(blocks))
    return {"block": ledger.slots.now()}


ACTIONS: dict[str, Act] = {
    action.__name__: action for action in (mint, transfer, burn, deploy, traits, send, mine, mark)
}


def _done(ledger: Ledger, record: Record, body: Body, *, final: bool = True) -> dict[str, Any]:
    kept = ledger.keep({**record, **_memo(body)}, final=final)
    asset = kept["asset"]["id"] if kept["kind"] == "mint" else kept.get("asset")
    return {"hash": kept["signature"], "block": kept["slot"], **({"token_id": asset} if asset else {})}


def _moved(ledger: Ledger, coin: SplCoin, changes: dict[str, int], body: Body) -> dict[str, Any]:
    """Change what owners have, in one transaction that is signed by the owners who lose some."""
    if any(coin.accounts.get(owner, 0) + change < 0 for owner, change in changes.items()):
        raise Refusal(409, "The chain refuses this: insufficient funds.")
    signers = [owner for owner, change in changes.items() if change < 0] or [AUTHORITY]
    others = [one for one in (*changes, coin.contract) if one not in signers]
    record: Record = {"kind": "amounts", "contract": coin.contract, "signers": signers, "others": others}
    record["changes"] = {owner: str(change) for owner, change in changes.items()}
    return _done(ledger, record, body)


def _coin_holder(coin: SplCoin, body: Body) -> str:
    """Return the address whose amount moves: `from`, or the only holder."""
    if body.get("from") is not None:
        return _address(body, "from")
    holders = [owner for owner, units in coin.accounts.items() if units]
    if len(holders) != 1:
        raise Refusal(400, f"from is missing, and {coin.name} has {len(holders)} holders.")
    return holders[0]


def _units(body: Body) -> int:
    """Return an amount in base units."""
    units = text(body, "amount")
    if not is_whole(units) or not 0 < int(units) <= coins.MOST_UNITS:
        raise Refusal(400, "amount is a number from 1 to 64 bits.")
    return int(units)


def _memo(body: Body) -> dict[str, list[str]]:
    memo = optional_text(body, "memo")
    if memo is None:
        return {}
    if len(memo.encode()) > LONGEST_MEMO:
        raise Refusal(400, f"A memo has at most {LONGEST_MEMO} bytes.")
    return {"memos": [memo]}


def _owner(body: Body, owner: str) -> str:
    """Return the sender, who must be the owner. Raises Refusal(409) for anybody else."""
    if body.get("from") is None:
        return owner
    sender = _address(body, "from")
    if sender != owner:
        raise Refusal(409, "The chain refuses this: the sender is not the owner.")
    return sender


def _special(body: Body) -> dict[str, Any]:
    special: dict[str, Any] = {name: flag(body, name, False) for name in _FLAGS if name in body}
    if "interface" in body:
        special["interface"] = _interface(body)
    if "delegate" in body:
        special["delegate"] = _address(body, "delegate") if body["delegate"] is not None else None
    return special


def _interface(body: Body) -> str:
    interface = optional_text(body, "interface") or "ProgrammableNFT"
    if interface not in INTERFACES:
        raise Refusal(400, f"interface is one of {', '.join(INTERFACES)}.")
    return interface


def _address(body: Body, name: str) -> str:
    value = text(body, name)
    if not is_address(value):
        raise Refusal(400, f"{name} is an address: 32 bytes in base58.")
    return value


def _next_number(ledger: Ledger, collection: Collection) -> int:
    number = 1
    while mint_of(collection.contract, number) in ledger.present.assets:
        number += 1
    return number
