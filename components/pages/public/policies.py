"""The privacy policy and the terms of service."""

import reflex as rx

from components.layout.reading import bullets, chapter, link, reading, sentence
from settings import settings
from state.help.retention import LEFT_DAYS, RIVAL_DAYS, TALLY_DAYS, TOLD_DAYS, TRAIL_DAYS, UNTOLD_DAYS, UNUSED_HOURS

EFFECTIVE_DATE = "8 July 2025"
MINIMUM_AGE = 13
_NAME, _BRAND, _BOT = settings().product_name, settings().brand, settings().bot_name


def _effective() -> str:
    return f"Effective {EFFECTIVE_DATE}"


def _write_to_us() -> rx.Component:
    return link(settings().contact_address, f"mailto:{settings().contact_address}")


def _log_is_kept() -> str:
    days = settings().log_days
    how_long = f"for {days} days" if days else "as long as the service runs"
    return (
        f"A line of a server's log is kept {how_long}, with the Discord IDs of the member and of the person who acted."
    )


def privacy_policy() -> rx.Component:
    """Return the page /privacy-policy."""
    return reading(
        "Privacy Policy",
        _effective(),
        chapter(
            "In short",
            f"{_NAME}, a brand of {_BRAND}, stores what it needs to give Discord roles to NFT holders, and nothing "
            "else. There is no advertising, no tracking and no sale of data.",
        ),
        chapter(
            "What we store",
            bullets(
                (
                    "From Discord, when you log in: your user ID, username, display name and avatar, and which servers "
                    "you are in and whether you administer them. We ask for the scopes identify and guilds, so we do "
                    "not receive your e-mail address.",
                    "Discord's access tokens for your account, encrypted, until you log out everywhere.",
                    "Your sessions here: a hash of the session's id, your browser's name, and when you last used it. A "
                    "session ends after at most seven days.",
                    "Wallet addresses that you verify or try to verify, how and when, and the codes we gave you; for "
                    "a Transaction Proof, also the transaction.",
                    "NFT balances of verified wallets as public blockchains show them, the block they were read at, "
                    "and when a token last went to or from them.",
                    "Your choices: in which servers your wallets count, and where administrators may see them.",
                    f"Of servers with {_BOT}, as Discord tells the bot: name and icon, who belongs to them with their "
                    "Discord ID, name, avatar and roles, and who administers them.",
                    "The servers' rules, roles given and taken, and a log of what was done, by whom and why.",
                )
            ),
        ),
        chapter(
            "How long we keep it",
            bullets(
                (
                    _log_is_kept(),
                    f"When you leave a server, we delete you from its list of members after {LEFT_DAYS} days. We "
                    f"delete notices {TOLD_DAYS} days after we showed them to you, and {UNTOLD_DAYS} days after they "
                    "were made if we never did.",
                    "We delete sessions and unfinished logins once they have ended, and the codes for a wallet a week "
                    "after they expire.",
                    f"We delete the number of a wallet's tokens with a trait or an ID {TALLY_DAYS} days after we "
                    f"counted them, and the list of tokens that a wallet received {TRAIL_DAYS} days after we last used "
                    "it.",
                    "We delete who else gave or took a role of yours that a rule gives "
                    f"{RIVAL_DAYS} days after it happened.",
                    "Everything else stays until you remove it or delete your data.",
                )
            ),
        ),
        chapter(
            "Cookies and storage in your browser",
            "One cookie keeps you logged in. A second one exists for ten minutes while you log in with Discord. Your "
            "browser also keeps the session's id in local storage under the name session-id. They are used for "
            "logging in and for nothing else. If you choose a language, a third cookie remembers it.",
        ),
        chapter(
            "What others see",
            bullets(
                (
                    "Administrators of a server see its members with the roles that rules gave them, whether each rule "
                    "is met and by how many tokens, and its log. They see wallet addresses only if you allow it for "
                    "their server, and then shortened.",
                    "If you choose an address for payouts in a server, its administrators can download that whole "
                    "address with what you hold for its rules. You see who did and when. The choice ends at once when "
                    "you withdraw it, remove the wallet, leave the server or delete your data.",
                    "Before they save a rule, administrators see which members it would concern. Where fewer than five "
                    "people meet a rule on single tokens or traits, they see numbers without names. The server's log "
                    "shows who looked at which rule.",
                    "Administrators may write a list of addresses for a rule from what they know themselves, and yours "
                    "may be on it. The list belongs to their server: nobody else sees it, and it is deleted with the "
                    f"server, with the last rule that uses it, or after {UNUSED_HOURS} hours if none does. Deleting "
                    "your data does not change it. It is linked to you only if you verify such an address, and then "
                    "only by the role that you get.",
                    "Other members see the roles you have, as Discord shows them. A role tells what you hold.",
                    "A code in your marketplace bio is public while it is there. Take it out afterwards. A transaction "
                    "that verifies a wallet stays public on its blockchain.",
                )
            ),
        ),
        chapter(
            "The services we ask",
            "To do its work the service talks to Discord, to OpenSea and Magic Eden (the public profile of an address "
            "you entered, the names of collections), to blockchain nodes and indexers (what verified addresses hold) "
            "and to the places where collections keep their tokens' traits. Each of them learns what we ask it about, "
            "and has its own privacy policy.",
        ),
        chapter(
            "What you can do about it",
            bullets(
                (
                    sentence(
                        "See and download everything that is stored about you, and log out any of your browsers, on "
                        "your ",
                        link("account page", "/account"),
                        ".",
                    ),
                    "Decide there for each server whether your wallets count, and whether administrators may see them.",
                    "Remove a wallet at any time under “Verify Wallets”. It then no longer counts anywhere.",
                    "Delete everything about you, also on your account page. It cannot be undone.",
                    sentence("Or write to ", _write_to_us(), " and name your Discord user ID."),
                )
            ),
        ),
        chapter(
            "What happens when you delete your data",
            bullets(
                (
                    "Your account, sessions, tokens, wallets, balances, codes, choices and notices are deleted at "
                    "once, and we give Discord's permission back.",
                    "The roles that your wallets earned are taken: at once, or after the grace time that a server has "
                    "set. Until a role is taken we keep one line which says that we gave it, with your Discord ID. A "
                    "role that stays because its rule is paused, or because the bot has left the server, keeps its "
                    "line.",
                    "Then your Discord ID is replaced by a random name throughout the log, which stays with the "
                    "servers it is about. The hashes of used transactions stay without any name, so that none "
                    "verifies a wallet twice.",
                    f"While you are a member of a server with {_BOT}, Discord still lists you to the bot, as it "
                    f"lists every member. {LEFT_DAYS} days after you leave the server we delete that entry.",
                )
            ),
        ),
        chapter(
            "Age",
            f"You must be at least {MINIMUM_AGE} years old to use {_NAME}, or older where Discord asks for more in "
            "your country. We do not knowingly store data about younger people.",
        ),
        chapter(
            "Changes and questions",
            sentence("When this policy changes, this page does, with a new date. Questions: ", _write_to_us(), "."),
        ),
    )


def terms_of_service() -> rx.Component:
    """Return the page /terms-of-service."""
    return reading(
        "Terms of Service",
        _effective(),
        chapter(
            "What this is",
            f"{_NAME}, a brand of {_BRAND}, is a dashboard and a Discord bot that give roles to members who hold "
            "certain NFTs. By using it you agree to these terms.",
        ),
        chapter(
            "Who may use it",
            f"You must be at least {MINIMUM_AGE} years old, have a Discord account of your own, and keep to "
            "Discord's own terms.",
        ),
        chapter(
            "What it costs",
            "Nothing. Rules, members and servers are not limited.",
        ),
        chapter(
            "For server owners and administrators",
            bullets(
                (
                    f"You decide which rules exist. {_BOT} acts on them without asking again.",
                    "Check which role a rule gives, and what that role may do, before you write the rule.",
                    "Tell your members what you use roles for, if your law requires it.",
                    f"You can pause or delete a rule, or remove {_BOT} from your server, at any time. Without the bot "
                    "no role can be given or taken.",
                )
            ),
        ),
        chapter(
            "For members",
            bullets(
                (
                    "Verify only wallets that are yours.",
                    "Do not try to pass off somebody else's wallet, profile or account as your own.",
                    "The server's rules decide who gets a role. The people who run the server can change them.",
                )
            ),
        ),
        chapter(
            "What is not allowed",
            bullets(
                (
                    "Disturbing the service, working around its limits, or reading other people's data.",
                    "Using it to harass people, to defraud them, or to break the law.",
                )
            ),
            "We may exclude people who do.",
        ),
        chapter(
            "What we do not promise",
            "The service is provided as it is. It depends on Discord, on marketplaces and on blockchains, which may be "
            "slow, wrong or down. What cannot be read changes no role, but we cannot promise that a role is right at "
            "every moment. Do not let anything of great value hang on a role alone.",
            "Nothing here is financial advice, and no role is an endorsement of a collection. As far as the law "
            "allows, we are not liable for losses that come from using the service or from its absence.",
        ),
        chapter(
            "Ending it",
            "You can stop at any time: remove your wallets, delete your data, remove the bot. We may change or end the "
            "service; when these terms change, this page does, with a new date.",
        ),
        chapter(
            "Questions",
            sentence("Write to ", _write_to_us(), ". See also the ", link("privacy policy", "/privacy-policy"), "."),
        ),
    )
