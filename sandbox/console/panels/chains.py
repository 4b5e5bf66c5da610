"""The tool for chains: who holds what, and the actions: mint, transfer, burn, payments, blocks."""

from collections.abc import Iterable, Sequence
from typing import Any

from sandbox.assembly import WholeSandbox
from sandbox.console.elements.forms import card, choice, datalist, field
from sandbox.console.elements.markup import Markup, el, join
from sandbox.console.elements.people import people_of
from sandbox.console.elements.place import Place
from sandbox.contracts import accounts
from sandbox.contracts.staking import STANDARDS as STAKING

SOLANA = "solana"
STANDARDS = ("ERC721", "ERC721Enumerable", "ERC1155", "Punks")
Json = dict[str, Any]


def names(sandbox: WholeSandbox) -> list[str]:
    """Return the names of the chains that run here."""
    evm = list(sandbox.chains.by_name) if sandbox.chains else []
    return [*evm, *([SOLANA] if sandbox.solana else [])]


async def panel(sandbox: WholeSandbox, place: Place) -> Markup:
    """Return the tool: which chain, who holds what on it, and the possible actions."""
    running = names(sandbox)
    if not running:
        return el("p", "No chain runs in this sandbox.", class_="card")
    chain = _chosen(running, place)
    links = [
        el("li", el("a", one, href=place.url(at=one), aria_current="true" if one == chain else None)) for one in running
    ]
    wallets = _wallets(sandbox, chain)
    state = await _state(sandbox, chain)
    return join(
        el("ul", links, class_="tabs"),
        datalist("wallets", wallets),
        el("div", _shown(state, chain, wallets), id="panel-now", data_part=True, class_="wide"),
        _solana(place, state, wallets) if chain == SOLANA else _evm(place, chain, state),
    )


async def now(sandbox: WholeSandbox, place: Place) -> Markup:
    """Return what people hold at this moment."""
    running = names(sandbox)
    if not running:
        return Markup()
    chain = _chosen(running, place)
    return _shown(await _state(sandbox, chain), chain, _wallets(sandbox, chain))


def _chosen(running: list[str], place: Place) -> str:
    return place.at if place.at in running else "base" if "base" in running else running[0]


async def _state(sandbox: WholeSandbox, chain: str) -> Json:
    if chain == SOLANA and sandbox.solana:
        return await sandbox.solana.world()
    assert sandbox.chains is not None
    return await sandbox.chains.by_name[chain].world()


def _wallets(sandbox: WholeSandbox, chain: str) -> dict[str, str]:
    """Return address → username of its owner."""
    family = "solana" if chain == SOLANA else "evm"
    people = [sandbox.discord.person_view(user) for user in people_of(sandbox.discord)]
    return {str(person["wallets"][family]): str(person["username"]) for person in people}


def _shown(state: Json, chain: str, wallets: dict[str, str]) -> Markup:
    owners = {address if chain == SOLANA else address.lower(): name for address, name in wallets.items()}
    held: dict[str, dict[str, list[str]]] = {address: {} for address in owners}
    for collection in state["collections"]:
        for token in collection["tokens"]:
            for owner, amount in token["owners"].items():
                address = owner if chain == SOLANA else owner.lower()
                count = f" ×{amount}" if str(amount) != "1" else ""
                held.setdefault(address, {}).setdefault(collection["name"], []).append(f"{_short(token['id'])}{count}")
        for owner, units in collection.get("holders", {}).items():
            address = owner if chain == SOLANA else owner.lower()
            held.setdefault(address, {})[collection["name"]] = [_whole(units, collection["decimals"])]
    rows = [
        el(
            "tr",
            el("th", owners.get(address, "somebody else"), scope="row"),
            el("td", el("code", address)),
            el("td", [_tokens(name, ids) for name, ids in found.items()] or el("span", "nothing", class_="dim")),
        )
        for address, found in held.items()
        if found or address in owners
    ]
    collections = [
        el("li", el("strong", one["name"]), f" {_kind(one)} ", el("code", one["contract"]))
        for one in state["collections"]
    ]
    smart = [
        el("li", el("strong", one["standard"]), f" of {owners.get(one['owner'], one['owner'])} ",
           el("code", one["account"]))
        for one in state.get("accounts", ())
    ]  # fmt: skip
    head = el("tr", (el("th", text, scope="col") for text in ("Who", "Wallet", "Holds")))
    table = el("table", el("thead", head), el("tbody", rows))
    return join(
        el("section", el("h3", "Collections"), el("ul", collections, class_="rows"), class_="card"),
        el("section", el("h3", "Contract accounts"), el("ul", smart, class_="rows"), class_="card") if smart else "",
        el("section", el("h3", "Wallets"), el("div", table, class_="scroll", tabindex="0"), class_="card"),
    )


def _tokens(name: str, ids: list[str]) -> Markup:
    return el("div", el("span", f"{name} "), (el("span", id_, class_="chip") for id_ in ids))


def _short(id_: str) -> str:
    return id_ if len(id_) <= 12 else f"{id_[:5]}…{id_[-4:]}"


def _kind(one: Json) -> str:
    """Return the standard of a collection; for a coin also its decimals."""
    if "decimals" not in one:
        return str(one["standard"])
    said = "no decimals" if one["decimals"] is None else f"{one['decimals']} decimals"
    return f"{one['standard']}, {said}{', rebases' if one.get('rebases') else ''}"


def _whole(units: str, decimals: int | None) -> str:
    """Return an amount in whole coins; in base units where the decimals are unknown, 0 or above 36."""
    if decimals is None or not 0 < decimals <= 36:
        return units
    digits = units.rjust(decimals + 1, "0")
    return f"{digits[:-decimals]}.{digits[-decimals:]}".rstrip("0").rstrip(".")


def _collection(state: Json) -> Markup:
    plain = (one for one in state["collections"] if "view" not in one and "decimals" not in one)
    return choice("Collection", "contract", _named(plain))


def _named(listed: Iterable[Json]) -> dict[str, str]:
    return {str(one["contract"]): str(one["name"]) for one in listed}


def _coins(place: Place, base: str, state: Json, standards: Sequence[str], *, rebase: bool) -> Markup:
    """Return the forms for coins, with amounts in base units."""
    coin = choice("Coin", "contract", _named(one for one in state["collections"] if "decimals" in one))
    amount = field("Amount (base units)", "amount", required=True, inputmode="numeric")
    to, sender = field("To", "to", known="wallets", required=True), field("From", "from", known="wallets")
    decimals = field("Decimals, or nothing", "decimals", "18")
    name, slug = field("Name", "name", required=True), field("Slug", "slug", required=True)
    percent = field("Percent of what they have", "percent", "90", inputmode="numeric")
    return join(
        card(place, "Mint coins", f"{base}/mint", coin, amount, to, button="Mint"),
        card(place, "Transfer coins", f"{base}/transfer", coin, amount, sender, to,
             note="Without From, from the only holder.", button="Transfer"),
        card(place, "Burn coins", f"{base}/burn", coin, amount, sender, button="Burn"),
        card(place, "New coin", f"{base}/deploy", choice("Standard", "standard", standards), name, slug, decimals,
             button="Deploy"),
        card(place, "Rebase", f"{base}/rebase", coin, percent, note="Only some coins rebase.", button="Rebase")
        if rebase else None,
    )  # fmt: skip


def _evm(place: Place, chain: str, state: Json) -> Markup:
    collection, base = _collection(state), f"chains/{chain}"
    token = field("Token id", "token_id", required=True, inputmode="numeric")
    amount = field("Amount (ERC-1155)", "amount", placeholder="1", inputmode="numeric")
    to, sender = field("To", "to", known="wallets", required=True), field("From", "from", known="wallets")
    pay = field("From", "from", known="wallets", required=True)
    smart = choice(
        "Account", "account", {one["account"]: f"{one['standard']} {one['account'][:8]}…" for one in state["accounts"]}
    )
    anybody = "Any address will do; those of the people are offered."
    return join(
        card(place, "Mint", f"{base}/mint", collection, token, amount, to, note=anybody, button="Mint"),
        card(place, "Transfer", f"{base}/transfer", collection, token, amount, sender, to,
             note="Without From, from whoever holds it.", button="Transfer"),
        card(place, "Burn", f"{base}/burn", collection, token, amount, sender, button="Burn"),
        card(place, "Pay", f"{base}/send", pay, to, field("Wei", "value_wei", required=True, inputmode="numeric"),
             field("Data (0x…)", "data"), note="A payment to oneself proves a wallet.", button="Pay"),
        card(place, "Delegate a wallet", f"{base}/delegate", field("Vault", "vault", known="wallets", required=True),
             to, button="Delegate"),
        card(place, "New collection", f"{base}/deploy", choice("Standard", "standard", STANDARDS),
             field("Name", "name", required=True), field("Slug", "slug", required=True), button="Deploy"),
        card(place, "New contract account", f"{base}/deploy", choice("Standard", "standard", accounts.STANDARDS),
             field("Owner", "owner", known="wallets", required=True), button="Deploy"),
        card(place, "A contract account pays itself", f"{base}/self-transaction", smart,
             field("Wei", "value_wei", "0", inputmode="numeric"), field("Data (0x…)", "data"),
             note="By its owner, or by a bundler. It proves the account on this chain.", button="Pay"),
        _staking(place, base, state),
        _coins(place, base, state, ("ERC20",), rebase=True),
        card(place, "Blocks", f"{base}/mine", field("Mine", "blocks", "10", inputmode="numeric"), button="Mine"),
        card(place, "Reorganise", f"{base}/reorg", field("Depth", "depth", "3", inputmode="numeric"),
             button="Reorganise"),
    )  # fmt: skip


def _staking(place: Place, base: str, state: Json) -> Markup:
    """Return the forms for staking contracts."""
    contract = choice("Staking contract", "contract", _named(one for one in state["collections"] if "view" in one))
    token = field("Token id", "token_id", required=True, inputmode="numeric")
    sender = field("From", "from", known="wallets", required=True)
    return join(
        card(place, "Stake", f"{base}/stake", contract, token, sender, button="Stake"),
        card(place, "Unstake", f"{base}/unstake", contract, token, sender, button="Unstake"),
        card(place, "New staking contract", f"{base}/deploy", choice("Standard", "standard", STAKING),
             field("Name", "name", required=True), field("Slug", "slug", required=True), button="Deploy"),
    )  # fmt: skip


def _solana(place: Place, state: Json, wallets: dict[str, str]) -> Markup:
    collection = _collection(state)
    token = field("Token (mint address or number)", "token_id", required=True)
    to, sender = field("To", "to", known="wallets", required=True), field("From", "from", known="wallets")
    mine = field("Token (mint address or number)", "token_id", placeholder="the next one")
    signer = choice("Signed by", "from", wallets)
    return join(
        card(place, "Mint", "chains/solana/mint", collection, mine, to, button="Mint"),
        card(place, "Transfer", "chains/solana/transfer", collection, token, sender, to, button="Transfer"),
        card(place, "Burn", "chains/solana/burn", collection, token, sender, button="Burn"),
        card(place, "Sign a memo", "chains/solana/send", signer, field("Memo", "memo", required=True),
             note="A memo with the code proves a wallet.", button="Send"),
        _coins(place, "chains/solana", state, ("SPL", "SPL2022"), rebase=False),
        card(place, "Slots", "chains/solana/mine", field("Let pass", "blocks", "10", inputmode="numeric"),
             button="Let pass"),
    )  # fmt: skip
