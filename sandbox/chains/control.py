"""`/control/chains/<chain>/…`: the control calls that change a chain."""

import re
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from aiohttp import web

from sandbox.base.body import Body, fields, flag, is_whole, optional_text, text, trait_values
from sandbox.base.chain_table import ACCOUNT_DEPLOYER, KEEPER
from sandbox.base.refusal import Refusal
from sandbox.chains import abi, coins, names, replay
from sandbox.chains.chain import Chain, Record
from sandbox.chains.coins import Coin
from sandbox.chains.seeds import PUNKS, STANDARDS, Collection
from sandbox.contracts import accounts, staking

MOST_BLOCKS = 500
MOST_ACTS = 1_000
MOST_PERCENT = 10_000
LONGEST_NAME = 255
"""The bytes of a name in ENS, as in DNS."""
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_EVERYTHING = abi.UINT256 - 1

Act = Callable[[Chain, Body], Awaitable[dict[str, Any]]]


def routes(chains: Mapping[str, Chain]) -> list[web.RouteDef]:
    """Return one route for all actions on all EVM chains."""

    async def act(request: web.Request) -> web.Response:
        chain = chains.get(request.match_info["chain"])
        if chain is None:
            raise Refusal(404, f"No chain is called {request.match_info['chain']!r}. They are: {', '.join(chains)}.")
        action, body = _action(request.match_info["action"]), await fields(request)
        async with chain.reachable():
            return web.json_response(await action(chain, body))

    return [web.post("/control/chains/{chain}/{action}", act)]


async def mint(chain: Chain, body: Body) -> dict[str, Any]:
    """Mint a token: `{contract, token_id, amount?, to}`; for a coin `{contract, amount, to}` in base units."""
    if (coin := chain.coin(text(body, "contract"))) is not None:
        data = coins.moving(None, _address(body, "to"), _units(body))
        return await _transact(chain, KEEPER, coin.contract, data)
    collection, token, to = chain.collection(text(body, "contract")), _number(body, "token_id"), _address(body, "to")
    amount = _amount(body, collection)
    if collection.standard == "ERC1155":
        data = abi.call("Collection1155", "mint(address,uint256,uint256)", to, token, amount)
    elif collection.standard == PUNKS:
        data = abi.call("Punks", "setInitialOwner(address,uint256)", to, token)
    else:
        data = abi.call("Collection721", "mint(address,uint256)", to, token)
    return await _transact(chain, KEEPER, collection.contract, data)


async def transfer(chain: Chain, body: Body) -> dict[str, Any]:
    """Transfer a token: `{contract, token_id, amount?, from?, to}`.

    `from` may be left out if the token has one holder. For a coin `{contract, amount, from?, to}` in base units.
    """
    if (coin := chain.coin(text(body, "contract"))) is not None:
        sender = await _coin_holder(chain, coin, body)
        return await _transact(chain, sender, coin.contract, coins.moving(sender, _address(body, "to"), _units(body)))
    collection, token, to = chain.collection(text(body, "contract")), _number(body, "token_id"), _address(body, "to")
    sender, amount = await _holder(chain, collection, token, body), _amount(body, collection)
    if collection.standard == "ERC1155":
        data = abi.safe_transfer_1155(sender, to, token, amount)
    elif collection.standard == PUNKS:
        data = abi.call("Punks", "transferPunk(address,uint256)", to, token)
    else:
        data = abi.call("Collection721", "transferFrom(address,address,uint256)", sender, to, token)
    return await _transact(chain, sender, collection.contract, data)


async def burn(chain: Chain, body: Body) -> dict[str, Any]:
    """Burn a token: `{contract, token_id, amount?, from?}`; for a coin `{contract, amount, from?}` in base units."""
    if (coin := chain.coin(text(body, "contract"))) is not None:
        sender = await _coin_holder(chain, coin, body)
        return await _transact(chain, sender, coin.contract, coins.moving(sender, None, _units(body)))
    collection, token = chain.collection(text(body, "contract")), _number(body, "token_id")
    sender, amount = await _holder(chain, collection, token, body), _amount(body, collection)
    if collection.standard == "ERC1155":
        data = abi.call("Collection1155", "burn(address,uint256,uint256)", sender, token, amount)
    elif collection.standard == PUNKS:
        data = abi.call("Punks", "transferPunk(address,uint256)", abi.NOBODY, token)
    else:
        data = abi.call("Collection721", "burn(uint256)", token)
    return await _transact(chain, sender, collection.contract, data)


async def deploy(chain: Chain, body: Body) -> dict[str, Any]:
    """Deploy a contract: `{standard, name, slug}`; for a coin (ERC20) also `{decimals?, symbol?, rebases?}`.

    `decimals` is the coin's answer to decimals(), whatever it is; null makes the answer empty. For a contract account
    `{standard, owner}`.
    """
    standard = text(body, "standard")
    if standard in accounts.STANDARDS:
        return await _deploy_account(chain, standard, _address(body, "owner"))
    name, slug = text(body, "name"), text(body, "slug")
    standards = (*STANDARDS, PUNKS, coins.STANDARD, *staking.STANDARDS, *accounts.STANDARDS)
    if standard not in standards:
        raise Refusal(400, f"standard is one of {', '.join(standards)}.")
    if not _SLUG.fullmatch(slug):
        raise Refusal(400, "slug is made of lower-case letters, digits and single hyphens.")
    if standard in staking.STANDARDS:
        return await _deploy_staking(chain, name, slug, standard.removeprefix(staking.PREFIX))
    symbol = "".join(part[0] for part in slug.split("-")).upper()
    if standard == coins.STANDARD:
        return await _deploy_coin(chain, body, name, slug, symbol)
    data = abi.deployment(standard, name, symbol, f"{chain.url}/metadata/{chain.facts.name}/", KEEPER)
    record: Record = {"kind": "tx", "from": chain.facts.deployer, "data": data}
    record["collection"] = {"name": name, "slug": slug, "standard": standard}
    return await _deployed(chain, record)


async def _deploy_coin(chain: Chain, body: Body, name: str, slug: str, symbol: str) -> dict[str, Any]:
    decimals, symbol = coins.decimals_in(body), optional_text(body, "symbol") or symbol
    record: Record = {"kind": "tx", "from": coins.deployer(chain.facts)}
    record["data"] = coins.deployment(name, symbol, decimals)
    record["coin"] = {"name": name, "symbol": symbol, "slug": slug, "decimals": decimals}
    record["coin"]["rebases"] = flag(body, "rebases", False)
    return await _deployed(chain, record)


async def _deploy_staking(chain: Chain, name: str, slug: str, kind: str) -> dict[str, Any]:
    data = abi.staking_deployment(staking.KINDS[kind].contract, name, KEEPER)
    record: Record = {"kind": "tx", "from": staking.deployer(chain.facts.name), "data": data}
    record["staking"] = {"name": name, "slug": slug, "kind": kind}
    return await _deployed(chain, record)


async def _deploy_account(chain: Chain, standard: str, owner: str) -> dict[str, Any]:
    record: Record = {"kind": "tx", "from": ACCOUNT_DEPLOYER, "data": abi.account(standard, owner)}
    record["account"] = {"standard": standard, "owner": owner}
    return await _deployed(chain, record)


async def _deployed(chain: Chain, record: Record) -> dict[str, Any]:
    """Deploy what a record lists. Raises Refusal(409) for a slug that something else has."""
    slug = next((record[kind]["slug"] for kind in ("collection", "coin", "staking") if kind in record), None)
    async with chain.lock:
        every = (*chain.collections.values(), *chain.coins.values(), *chain.staking.values())
        if any(listed.slug == slug for listed in every):
            raise Refusal(409, f"{chain.facts.name} has a collection {slug} already.")
        record = await chain.transact(record)
    return {"contract": record["contract"], "hash": record["hash"], "block": record["block"]}


async def rebase(chain: Chain, body: Body) -> dict[str, Any]:
    """Change every balance to `percent` percent of what it was, without an event: `{contract, percent}`."""
    coin = chain.coin(text(body, "contract"))
    if coin is None or not coin.rebases:
        raise Refusal(404, f"There is no coin that rebases at {text(body, 'contract')} on {chain.facts.name}.")
    percent = _number(body, "percent")
    if not 0 < percent <= MOST_PERCENT:
        raise Refusal(400, f"percent is at least 1 and at most {MOST_PERCENT}.")
    return await _transact(chain, KEEPER, coin.contract, abi.call(coins.CONTRACT, "rebase(uint256)", percent))


async def stake(chain: Chain, body: Body) -> dict[str, Any]:
    """Stake a token for `from`: `{contract, token_id, from}`. Nobody else can stake it until it is taken back."""
    return await _of_stakes(chain, body, "stake(uint256)")


async def unstake(chain: Chain, body: Body) -> dict[str, Any]:
    """Take a staked token back for `from`: `{contract, token_id, from}`."""
    return await _of_stakes(chain, body, "unstake(uint256)")


async def _of_stakes(chain: Chain, body: Body, form: str) -> dict[str, Any]:
    one = chain.staking_contract(text(body, "contract"))
    data = abi.call(one.source, form, _number(body, "token_id"))
    return await _transact(chain, _address(body, "from"), one.contract, data)


async def self_transaction(chain: Chain, body: Body) -> dict[str, Any]:
    """Have a contract account pay itself, through its owner or a bundler: `{account, value_wei?, data?}`."""
    account = chain.smart_account(_address(body, "account"))
    value = _number(body, "value_wei") if body.get("value_wei") is not None else 0
    data = _data(body)
    async with chain.confirmed_together(), chain.lock:
        await chain.fund(account.account, value)
        record: Record = {"kind": "tx", "funds": {account.account: str(value)}}
        if account.standard == accounts.SAFE:
            called = accounts.execution(account.account, account.owner, value, data)
            record |= {"from": account.owner, "to": account.account, "data": called}
        else:
            # Each operation has its own nonce key, so that a restarted node can repeat it without the earlier ones.
            wanted = accounts.operation(account.account, secrets.randbits(192) << 64, value, data)
            named = await chain.answer(accounts.ENTRY_POINT, accounts.hash_of(wanted))
            agreed = abi.call(accounts.ACCOUNT, "approve(bytes32)", named)
            await chain.transact({"kind": "tx", "from": account.owner, "to": account.account, "data": agreed})
            record |= {"from": accounts.BUNDLER, "to": accounts.ENTRY_POINT, "data": accounts.bundle([wanted])}
        record = await chain.transact(record)
    return {"hash": record["hash"], "block": record["block"]}


async def traits(chain: Chain, body: Body) -> dict[str, Any]:
    """Replace all traits of a token: `{contract, token_id, traits}`."""
    collection, token, named = chain.collection(text(body, "contract")), _number(body, "token_id"), trait_values(body)
    record: Record = {"kind": "traits", "contract": collection.contract, "token": str(token), "traits": named}
    async with chain.lock:
        # In its own block, so that an indexer that stopped before it does not know the traits.
        chain.keep({**record, "block": chain.head + 1})
        await chain.mine(1)
        await chain.confirm()
    return {"traits": named}


async def send(chain: Chain, body: Body) -> dict[str, Any]:
    """Send a transaction: `{from, to, value_wei, data?}`."""
    data, value = _data(body), _number(body, "value_wei")
    return await _transact(chain, _address(body, "from"), _address(body, "to"), data, value)


async def mine(chain: Chain, body: Body) -> dict[str, Any]:
    """Mine blocks: `{blocks}`."""
    blocks = _number(body, "blocks")
    if not 0 < blocks <= MOST_BLOCKS:
        raise Refusal(400, f"blocks is at least 1 and at most {MOST_BLOCKS}.")
    async with chain.lock:
        await chain.mine(blocks)
    return {"block": chain.head}


async def several(chain: Chain, body: Body) -> dict[str, Any]:
    """Do several actions one after the other: `{acts: [{action, …}, …]}`.

    The confirmations of all of them are mined after the last one.
    """
    acts = body.get("acts")
    if not isinstance(acts, list) or not all(isinstance(one, dict) for one in acts):
        raise Refusal(400, "acts is a list of objects.")
    if len(acts) > MOST_ACTS:
        raise Refusal(400, f"acts has at most {MOST_ACTS} entries.")
    wanted = [(_action(text(one, "action")), one) for one in acts]
    if several in (action for action, _ in wanted):
        raise Refusal(400, "several is not an action of several.")
    async with chain.confirmed_together():
        return {"done": [await action(chain, one) for action, one in wanted]}


async def reorg(chain: Chain, body: Body) -> dict[str, Any]:
    """Replace the last blocks by empty ones: `{depth}`."""
    depth = _number(body, "depth")
    if not 0 < depth <= replay.DEEPEST_REORG:
        raise Refusal(400, f"depth is at least 1 and at most {replay.DEEPEST_REORG}.")
    await replay.reorg(chain, depth)
    return {"block": chain.head}


async def delegate(chain: Chain, body: Body) -> dict[str, Any]:
    """Delegate a vault, a contract or a token of one to an address: `{vault, to, contract?, token_id?, rights?}`."""
    vault, to, rights = _address(body, "vault"), _address(body, "to"), optional_text(body, "rights") or "0x0"
    if not rights.startswith("0x"):
        rights = "0x" + rights.encode().hex()
    if not re.fullmatch(r"0x[0-9a-fA-F]{1,64}", rights):
        raise Refusal(400, "rights is a text of up to 32 bytes, or as many in hexadecimal with 0x.")
    if body.get("contract") is None and body.get("token_id") is not None:
        raise Refusal(400, "contract is missing: a token is delegated with its contract.")
    # Shorter rights are the first of the 32 bytes, as a bytes24 of Solidity would be.
    rights = "0x" + rights[2:].ljust(64, "0")

    if body.get("contract") is None:
        data = abi.call("DelegateRegistry", "delegateAll(address,bytes32,bool)", to, rights, 1)
        return await _transact(chain, vault, chain.facts.registry, data)
    contract = _address(body, "contract")
    if body.get("token_id") is None:
        form = "delegateContract(address,address,bytes32,bool)"
        data = abi.call("DelegateRegistry", form, to, contract, rights, 1)
        return await _transact(chain, vault, chain.facts.registry, data)
    token, listed = _number(body, "token_id"), chain.collections.get(contract)
    if listed and listed.standard == "ERC1155":
        form = "delegateERC1155(address,address,uint256,bytes32,uint256)"
        data = abi.call("DelegateRegistry", form, to, contract, token, rights, _EVERYTHING)
    else:
        form = "delegateERC721(address,address,uint256,bytes32,bool)"
        data = abi.call("DelegateRegistry", form, to, contract, token, rights, 1)
    return await _transact(chain, vault, chain.facts.registry, data)


async def name(chain: Chain, body: Body) -> dict[str, Any]:
    """Set ENS names: `{name, address?, of?}`.

    The name resolves to `address`, and `of` takes it as its primary name; the two need not agree.
    """
    called = text(body, "name")
    if not chain.facts.names:
        raise Refusal(404, f"There is no directory of names on {chain.facts.name}.")
    if len(called.encode()) > LONGEST_NAME:
        raise Refusal(400, f"name has at most {LONGEST_NAME} bytes.")
    if "" in called.split("."):
        raise Refusal(400, "name is one label, or several with dots between them.")
    calls: list[names.Call] = []
    if body.get("address") is not None:
        calls += names.stands_for(called, _address(body, "address"))
    if body.get("of") is not None:
        calls += names.is_called(_address(body, "of"), called)
    async with chain.confirmed_together(), chain.lock:
        for to, data in calls:
            await chain.transact({"kind": "tx", "from": KEEPER, "to": to, "data": data})
    return {"block": chain.head}


ACTIONS: dict[str, Act] = {
    action.__name__.replace("_", "-"): action
    for action in (
        mint,
        transfer,
        burn,
        deploy,
        rebase,
        stake,
        unstake,
        traits,
        send,
        self_transaction,
        mine,
        several,
        reorg,
        delegate,
        name,
    )
}


def _action(called: str) -> Act:
    if (action := ACTIONS.get(called)) is None:
        raise Refusal(404, f"No action is called {called!r}: {', '.join(ACTIONS)}.")
    return action


async def _transact(chain: Chain, sender: str, to: str, data: str, value: int = 0) -> dict[str, Any]:
    return await _carried_out(chain, {"kind": "tx", "from": sender, "to": to, "data": data, "value": str(value)})


async def _carried_out(chain: Chain, record: Record) -> dict[str, Any]:
    async with chain.lock:
        record = await chain.transact(record)
    return {"hash": record["hash"], "block": record["block"]}


async def _holder(chain: Chain, collection: Collection, token: int, body: Body) -> str:
    if body.get("from") is not None:
        return _address(body, "from")
    holders = (await chain.owners()).get(collection.contract, {}).get(token, {})
    if not holders:
        raise Refusal(404, f"Nobody has token {token} of {collection.name}.")
    if len(holders) > 1:
        raise Refusal(400, f"from is missing, and token {token} of {collection.name} has several holders.")
    return next(iter(holders))


async def _coin_holder(chain: Chain, coin: Coin, body: Body) -> str:
    """Return the address whose amount moves: `from`, or the only holder."""
    if body.get("from") is not None:
        return _address(body, "from")
    holders = await chain.amounts(coin)
    if len(holders) != 1:
        raise Refusal(400, f"from is missing, and {coin.name} has {len(holders)} holders.")
    return next(iter(holders))


def _units(body: Body) -> int:
    """Return an amount in base units."""
    amount = _number(body, "amount")
    if amount < 1:
        raise Refusal(400, "amount is at least 1.")
    return amount


def _address(body: Body, name: str) -> str:
    value = text(body, name)
    if not _ADDRESS.fullmatch(value):
        raise Refusal(400, f"{name} is an address: 0x and 40 hexadecimal digits.")
    return value.lower()


def _data(body: Body) -> str:
    data = optional_text(body, "data") or "0x"
    if not re.fullmatch(r"0x([0-9a-fA-F]{2})*", data):
        raise Refusal(400, "data is hexadecimal with 0x.")
    return data


def _number(body: Body, name: str) -> int:
    digits = text(body, name)
    if not is_whole(digits) or int(digits) >= abi.UINT256:
        raise Refusal(400, f"{name} is a decimal number of at most 256 bits.")
    return int(digits)


def _amount(body: Body, collection: Collection) -> int:
    amount = _number(body, "amount") if body.get("amount") is not None else 1
    if amount < 1:
        raise Refusal(400, "amount is at least 1.")
    if collection.standard != "ERC1155" and amount != 1:
        raise Refusal(400, f"{collection.name} is an {collection.standard}: the amount of a token is 1.")
    return amount
