"""Profile pages for people: the account of an address at a marketplace, what it has, and a form for the bio."""

from collections.abc import Mapping
from html import escape
from urllib.parse import quote

from aiohttp import web

from sandbox.base.body import form
from sandbox.base.refusal import Refusal
from sandbox.marketplaces.accounts import BIO_CHARACTERS, Account, Accounts, normal
from sandbox.marketplaces.catalogue import SOLANA, Catalogue, Token

STYLE = """
body{margin:0;font:16px/1.5 system-ui,sans-serif;color:#16181d;background:#f6f7f9}
header{background:#fff;border-bottom:1px solid #dfe2e8;padding:.8rem 1.5rem;font-weight:600}
header span{font-weight:400;color:#5b6270}
main{max-width:60rem;margin:0 auto;padding:1.5rem}
section{background:#fff;border:1px solid #dfe2e8;border-radius:12px;padding:1.2rem;margin-bottom:1.2rem}
h1{margin:0 0 .2rem;font-size:1.6rem}h2{margin:0 0 .8rem;font-size:1.1rem}
code{overflow-wrap:anywhere;color:#5b6270}
label{display:block;font-weight:600;margin-bottom:.3rem}
textarea{box-sizing:border-box;width:100%;min-height:6rem;padding:.6rem;font:inherit;
border:1px solid #aab0bc;border-radius:8px}
button{margin-top:.6rem;padding:.55rem 1.4rem;font:inherit;font-weight:600;color:#fff;
background:#1d5fd0;border:0;border-radius:8px;cursor:pointer}
button:focus-visible,textarea:focus-visible{outline:3px solid #7fb0ff;outline-offset:2px}
.note{color:#0b6b3a}.wrong{color:#a3161f}
ul{list-style:none;margin:0;padding:0;display:grid;grid-template-columns:repeat(auto-fill,minmax(9rem,1fr));gap:.8rem}
li img{width:100%;border-radius:8px;display:block}li span{font-size:.85rem}
"""


class Profiles:
    """The pages of one marketplace under `/<place>/<address or username>`."""

    def __init__(self, place: str, title: str, accounts: Accounts, catalogue: Catalogue) -> None:
        self._place = place
        self._title = title
        self._accounts = accounts
        self._catalogue = catalogue

    def routes(self) -> list[web.RouteDef]:
        """Return the routes to view and to save."""
        path = f"/{self._place}/{{who}}"
        return [web.get(path, self._look), web.post(path, self._save)]

    async def _look(self, request: web.Request) -> web.Response:
        note = '<p class="note" role="status">Your bio is saved.</p>' if "saved" in request.query else ""
        return await self._page(self._find(request), note)

    async def _save(self, request: web.Request) -> web.Response:
        if request.headers.get("Sec-Fetch-Site") == "cross-site":
            raise web.HTTPForbidden(text="Another site may not edit a profile.")
        account = self._find(request)
        try:
            sent = await form(request)
        except ValueError:
            raise web.HTTPBadRequest(text="The body is not a form.") from None
        # Browsers send line breaks as CRLF; one character of the text area is one character of the bio.
        bio = str(sent.get("bio", "")).replace("\r\n", "\n")
        try:
            self._accounts.change(account.address, bio=bio)
        except Refusal as refused:
            shown = Account(account.address, account.username, bio)
            return await self._page(shown, f'<p class="wrong" role="alert">{escape(refused.message)}</p>', 400)
        raise web.HTTPSeeOther(f"/{self._place}/{quote(account.address)}?saved")

    def _find(self, request: web.Request) -> Account:
        who = request.match_info["who"]
        account = self._accounts.profile(who)
        if account is not None:
            return account
        try:
            return Account(normal(who), "", "")
        except Refusal as unknown:
            raise web.HTTPNotFound(text=f"{self._title} has no user {who}.") from unknown

    async def _page(self, account: Account, note: str, status: int = 200) -> web.Response:
        have = {
            name: items
            for name, market in self._catalogue.markets().items()
            if (items := await self._catalogue.of_account(market, account.address))
        }
        name = account.username or "Unnamed"
        sections = f"""<section><h1>{escape(name)}</h1><code>{escape(account.address)}</code></section>
<section><h2>Profile</h2>{note}<form method="post" action="/{self._place}/{quote(account.address)}">
<label for="bio">Bio</label>
<textarea id="bio" name="bio" maxlength="{BIO_CHARACTERS}">
{escape(account.bio)}</textarea><button type="submit">Save</button></form></section>
{_items(self._place, have)}"""
        return page(self._title, name, sections, status)


def page(title: str, name: str, sections: str, status: int = 200) -> web.Response:
    """Return a page of the marketplace with this title; `name` is text, `sections` is markup."""
    body = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>{escape(name)} | {title} (sandbox)</title><style>{STYLE}</style></head><body>
<header>{title} <span>in the sandbox: nothing here is real</span></header>
<main>{sections}</main></body></html>
"""
    return web.Response(text=body, status=status, content_type="text/html", headers={"Cache-Control": "no-store"})


def _items(place: str, have: Mapping[str, list[Token]]) -> str:
    if not have:
        return "<section><h2>Items</h2><p>No items yet.</p></section>"
    return "".join(
        f"<section><h2>Items on {escape(chain)}</h2>{items(place, tokens)}</section>" for chain, tokens in have.items()
    )


def items(place: str, tokens: list[Token]) -> str:
    """Return tokens as a list of pictures that lead to their pages."""
    cells = "".join(
        f'<li><a href="{escape(item_path(place, token))}">'
        f'<img src="{escape(picture_path(token))}" alt="" loading="lazy">'
        f"<span>{escape(token.name)}</span></a></li>"
        for token in tokens
    )
    return f"<ul>{cells}</ul>"


def item_path(place: str, token: Token) -> str:
    """Return the path of a token's page, in the form of this marketplace.

    See docs/facts.md#opensea-pages and docs/facts.md#magic-eden-pages.
    """
    market, contract = token.market, token.collection.contract
    if place == "opensea":
        return f"/opensea/item/{market.opensea}/{contract}/{token.id}"
    if market.name == SOLANA:
        return f"/magiceden/item-details/{token.id}"
    return f"/magiceden/item-details/{market.name}/{contract}/{token.id}"


def picture_path(token: Token) -> str:
    """Return the path of a token's picture."""
    return f"/metadata/{token.market.name}/{token.collection.contract}/{token.id}/image.svg"
