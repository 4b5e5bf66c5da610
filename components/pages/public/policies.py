"""The privacy policy and the terms of service."""

import reflex as rx

from components.layout.text_page import bullets, chapter, link, reading
from components.ui.effects.texts import sentence
from locales import _
from settings import settings
from state.public.retention import (
    DIGEST_DAYS,
    LEFT_DAYS,
    RIVAL_DAYS,
    TALLY_DAYS,
    TOLD_DAYS,
    TRAIL_DAYS,
    UNTOLD_DAYS,
    UNUSED_HOURS,
)

MINIMUM_AGE = 13
_NAME, _BRAND, _BOT = settings().product_name, settings().brand, settings().bot_name
_EFFECTIVE = _("Effective 8 July 2025")


def _write_to_us() -> rx.Component:
    address = settings().contact_address
    return (
        link(address, f"mailto:{address}")
        if address
        else link(_("the people behind {product}").format(product=_NAME), "/contact")
    )


def _log_is_kept() -> str:
    if days := settings().log_days:
        return _(
            "A line of a server's log is kept for {days} days, with the Discord IDs of the member and of the person "
            "who acted."
        ).format(days=days)
    return _(
        "A line of a server's log is kept as long as the service runs, with the Discord IDs of the member and of the "
        "person who acted."
    )


def privacy_policy() -> rx.Component:
    """Return the page /privacy-policy."""
    return reading(
        _("Privacy Policy"),
        _EFFECTIVE,
        chapter(
            _("In short"),
            _(
                "{product}, a brand of {brand}, stores what it needs to give Discord roles to NFT "
                "holders, and nothing else. There is no advertising, no tracking and no sale of data."
            ).format(product=_NAME, brand=_BRAND),
        ),
        chapter(
            _("What we store"),
            bullets(
                (
                    _(
                        "From Discord, when you log in: your user ID, username, display name and avatar, and "
                        "which servers you are in and whether you administer them. We ask for the scopes "
                        "identify and guilds, so we do not receive your e-mail address."
                    ),
                    _(
                        "Discord's access tokens for your account, encrypted, until you log out everywhere, and at "
                        "most for eight days after we last used them for you."
                    ),
                    _(
                        "Your sessions here: a hash of the session's id, your browser's name, and when you "
                        "last used it. A session ends after at most seven days."
                    ),
                    _(
                        "Wallet addresses that you verify or try to verify, how and when, and the codes we "
                        "gave you; for a Transaction Proof, also the transaction."
                    ),
                    _(
                        "NFT balances of verified wallets as public blockchains show them, the block they "
                        "were read at, and when a token last went to or from them."
                    ),
                    _("Your choices: in which servers your wallets count, and where administrators may see them."),
                    _(
                        "Of servers with {bot}, as Discord tells the bot: name and icon, who belongs to them "
                        "with their Discord ID, name, avatar and roles, and who administers them."
                    ).format(bot=_BOT),
                    _("The servers' rules, roles given and taken, and a log of what was done, by whom and why."),
                )
            ),
        ),
        chapter(
            _("How long we keep it"),
            bullets(
                (
                    _log_is_kept(),
                    _("We keep who downloaded your address for payouts for as long as a line of a server's log."),
                    _(
                        "When you leave a server, we delete you from its list of members after {days} days. "
                        "We delete notices {told} days after we showed them to you, and {untold} days after "
                        "they were made if we never did."
                    ).format(days=LEFT_DAYS, told=TOLD_DAYS, untold=UNTOLD_DAYS),
                    _(
                        "We delete sessions and unfinished logins once they have ended, and the codes for a "
                        "wallet a week after they expire."
                    ),
                    _(
                        "We keep how many of a wallet's tokens have a trait or an ID for {tally_days} days "
                        "after we counted them. We delete the list of tokens that a wallet received "
                        "{trail_days} days after we last used it."
                    ).format(tally_days=TALLY_DAYS, trail_days=TRAIL_DAYS),
                    _(
                        "If somebody else gives you or takes from you a role that a rule gives, we keep who "
                        "it was for {days} days."
                    ).format(days=RIVAL_DAYS),
                    _("Everything else stays until you remove it or delete your data."),
                )
            ),
        ),
        chapter(
            _("Cookies and storage in your browser"),
            _(
                "One cookie keeps you logged in. A second one exists for ten minutes while you log in"
                " with Discord. Your browser also keeps the session's id in local storage under the "
                "name session-id. They are used for logging in and for nothing else. If you choose a "
                "language, a third cookie remembers it."
            ),
        ),
        chapter(
            _("What others see"),
            bullets(
                (
                    _(
                        "Administrators of a server see its members with the roles that rules gave them, "
                        "whether each rule is met and by how many tokens, and its log. Only if you allow it "
                        "for their server do they see wallet addresses, shortened, and large amounts in all their "
                        "digits."
                    ),
                    _(
                        "If you choose an address for payouts in a server, its administrators can download "
                        "that whole address with the exact amounts that all your wallets hold for its rules. "
                        "An exact amount can tell which other wallet is yours. You see who did and when. The "
                        "choice ends at once when you withdraw it, remove the wallet, leave the server or "
                        "delete your data."
                    ),
                    _(
                        "Before they save a rule, administrators see which members it would concern. Where "
                        "fewer than five people meet a rule on single tokens or traits, they see numbers "
                        "without names. The server's log shows who looked at which rule."
                    ),
                    _(
                        "Administrators may write a list of addresses for a rule from what they know "
                        "themselves, and yours may be on it. The list belongs to their server: nobody else "
                        "sees it, and it is deleted with the server, with the last rule that uses it, or "
                        "after {hours} hours if none does. Deleting your data does not change it. It is "
                        "linked to you only if you verify such an address, and then only by the role that you"
                        " get."
                    ).format(hours=UNUSED_HOURS),
                    _("Other members see the roles you have, as Discord shows them. A role tells what you hold."),
                    _(
                        "A code in your marketplace bio is public while it is there. Take it out afterwards. "
                        "A transaction that verifies a wallet stays public on its blockchain."
                    ),
                )
            ),
        ),
        chapter(
            _("The services we ask"),
            _(
                "To do its work the service talks to Discord, to OpenSea and Magic Eden (the public "
                "profile of an address you entered, the names of collections), to blockchain nodes "
                "and indexers (what verified addresses hold) and to the places where collections keep"
                " their tokens' traits. Each of them learns what we ask it about, and has its own "
                "privacy policy."
            ),
        ),
        chapter(
            _("What you can do about it"),
            bullets(
                (
                    sentence(
                        _(
                            "See and download everything that is stored about you, and log out any of your "
                            "browsers, on your {page}."
                        ),
                        page=link(_("account page"), "/account"),
                    ),
                    _(
                        "Decide there for each server whether your wallets count, and whether administrators "
                        "may see them."
                    ),
                    _("Remove a wallet at any time under “Verify Wallets”. It then no longer counts anywhere."),
                    _("Delete everything about you, also on your account page. It cannot be undone."),
                    sentence(_("Or write to {address} and name your Discord user ID."), address=_write_to_us()),
                )
            ),
        ),
        chapter(
            _("What happens when you delete your data"),
            bullets(
                (
                    _(
                        "Your account, sessions, tokens, wallets, balances, codes, choices and notices are "
                        "deleted at once, and we give Discord's permission back."
                    ),
                    _(
                        "The roles that your wallets earned are taken: at once, or after the grace time that "
                        "a server has set. Until a role is taken we keep one line which says that we gave it,"
                        " with your Discord ID. A role that stays because its rule is paused, or because the "
                        "bot has left the server, keeps its line."
                    ),
                    _(
                        "Then your Discord ID is replaced by a random name throughout the log, which stays "
                        "with the servers it is about. The hashes of used transactions stay without any name,"
                        " so that none verifies a wallet twice."
                    ),
                    _(
                        "For {days} more days we keep a digest of your Discord ID, which nobody can turn back into "
                        "the ID without our key. By it we recognise your name in a server's audit log and do not "
                        "store it again."
                    ).format(days=DIGEST_DAYS),
                    _(
                        "While you are a member of a server with {bot}, Discord still lists you to the bot, "
                        "as it lists every member. {days} days after you leave the server we delete that "
                        "entry."
                    ).format(bot=_BOT, days=LEFT_DAYS),
                )
            ),
        ),
        chapter(
            _("Age"),
            _(
                "You must be at least {age} years old to use {product}, or older where Discord asks "
                "for more in your country. We do not knowingly store data about younger people."
            ).format(age=MINIMUM_AGE, product=_NAME),
        ),
        chapter(
            _("Changes and questions"),
            sentence(
                _("When this policy changes, this page does, with a new date. Questions: {address}."),
                address=_write_to_us(),
            ),
        ),
    )


def terms_of_service() -> rx.Component:
    """Return the page /terms-of-service."""
    return reading(
        _("Terms of Service"),
        _EFFECTIVE,
        chapter(
            _("What this is"),
            _(
                "{product}, a brand of {brand}, is a dashboard and a Discord bot that give roles to "
                "members who hold certain NFTs. By using it you agree to these terms."
            ).format(product=_NAME, brand=_BRAND),
        ),
        chapter(
            _("Who may use it"),
            _(
                "You must be at least {age} years old, have a Discord account of your own, and keep "
                "to Discord's own terms."
            ).format(age=MINIMUM_AGE),
        ),
        chapter(_("What it costs"), _("Nothing. Rules, members and servers are not limited.")),
        chapter(
            _("For server owners and administrators"),
            bullets(
                (
                    _("You decide which rules exist. {bot} acts on them without asking again.").format(bot=_BOT),
                    _("Check which role a rule gives, and what that role may do, before you write the rule."),
                    _("Tell your members what you use roles for, if your law requires it."),
                    _(
                        "You can pause or delete a rule, or remove {bot} from your server, at any time. "
                        "Without the bot no role can be given or taken."
                    ).format(bot=_BOT),
                )
            ),
        ),
        chapter(
            _("For members"),
            bullets(
                (
                    _("Verify only wallets that are yours."),
                    _("Do not try to pass off somebody else's wallet, profile or account as your own."),
                    _("The server's rules decide who gets a role. The people who run the server can change them."),
                )
            ),
        ),
        chapter(
            _("What is not allowed"),
            bullets(
                (
                    _("Disturbing the service, working around its limits, or reading other people's data."),
                    _("Using it to harass people, to defraud them, or to break the law."),
                )
            ),
            _("We may exclude people who do."),
        ),
        chapter(
            _("What we do not promise"),
            _(
                "The service is provided as it is. It depends on Discord, on marketplaces and on "
                "blockchains, which may be slow, wrong or down. What cannot be read changes no role, "
                "but we cannot promise that a role is right at every moment. Do not let anything of "
                "great value hang on a role alone."
            ),
            _(
                "Nothing here is financial advice, and no role is an endorsement of a collection. As "
                "far as the law allows, we are not liable for losses that come from using the service"
                " or from its absence."
            ),
        ),
        chapter(
            _("Ending it"),
            _(
                "You can stop at any time: remove your wallets, delete your data, remove the bot. We "
                "may change or end the service; when these terms change, this page does, with a new "
                "date."
            ),
        ),
        chapter(
            _("Questions"),
            sentence(
                _("Write to {address}. See also the {policy}."),
                address=_write_to_us(),
                policy=link(_("privacy policy"), "/privacy-policy"),
            ),
        ),
    )
