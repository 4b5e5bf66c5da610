"""The tool for profiles: what everybody's bio says at each marketplace."""

from sandbox.assembly import WholeSandbox
from sandbox.console.elements.forms import do, field
from sandbox.console.elements.markup import Markup, el, join
from sandbox.console.elements.people import people_of, picture
from sandbox.console.elements.place import Place
from sandbox.discord.world.entities import User
from sandbox.marketplaces import PLACES
from sandbox.marketplaces.accounts import BIO_CHARACTERS, Account


def panel(sandbox: WholeSandbox, place: Place) -> Markup:
    """Return a card for each person, the viewer's first."""
    if sandbox.marketplaces is None:
        return el("p", "No marketplace runs in this sandbox.", class_="card")
    people = sorted(people_of(sandbox.discord), key=lambda user: user is not place.user)
    return join(_person(sandbox, place, user) for user in people)


def _person(sandbox: WholeSandbox, place: Place, user: User) -> Markup:
    wallets = sandbox.discord.person_view(user)["wallets"]
    forms = [_profile(sandbox, place, user, at, str(wallets["evm" if at == "opensea" else "solana"])) for at in PLACES]
    return el(
        "section", el("h3", picture(user, 24), user.username), el("div", forms, class_="pair"), class_="card wide"
    )


def _profile(sandbox: WholeSandbox, place: Place, user: User, at: str, address: str) -> Markup:
    assert sandbox.marketplaces is not None
    account = sandbox.marketplaces.accounts[at].find(address) or Account(address, "", "")
    key, title = f"bio-{at}-{user.id}", PLACES[at]
    return do(
        place,
        f"{at}/accounts/{address}",
        el("p", el("a", f"{title} profile", href=f"/{at}/{address}"), el("br"), el("code", address)),
        el("label", el("span", f"{title} bio of {user.username}"), for_=key),
        # A line break directly after the tag is not part of the text.
        el("textarea", "\n" + account.bio, id=key, name="bio", maxlength=BIO_CHARACTERS, rows="2"),
        field(f"{title} username", "username", account.username),
        el("button", "Save", aria_label=f"Save {title} profile of {user.username}"),
        class_="fields",
    )
