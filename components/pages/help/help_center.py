"""The help center: three setup guides, ten answers, and how to change the panel."""

import reflex as rx

from components.layout.navigation import LOGIN_PATH, SUPPORT_PATH
from components.layout.reading import Text, bullets, chapter, code, link, reading, sentence, steps
from settings import settings
from state.help.chains import chain_list
from state.help.panel import LONGEST_DESCRIPTION, LONGEST_EMBED, LONGEST_LABEL, LONGEST_TITLE, SAFE_NAME

_NAME, _BOT = settings().product_name, settings().bot_name

GUIDES = (
    ("Set up your server", (
        ("Log in with Discord", "Use the button at the top of any page. Discord asks whether we may know who you are "
         "and which servers you are in."),
        ("Add your server", "Open “Add a server”. It lists the servers where you are the owner or an administrator."),
        (f"Invite {_BOT}", f"Press “Add {_BOT}” beside a server. Discord shows what the bot may do before you agree."),
        ("Put the bot's role in its place", f"In Discord's server settings, drag {_BOT}'s role above every role that "
         "your rules give. Discord lets nobody give a role above their own."),
    )),
    ("Write your first rule", (
        ("Open the server's configuration", "On the dashboard, press “Configure” on the server's card."),
        ("Press “Add Rule”", "Choose the chain and enter the collection's contract address, or paste the address of "
         "its page on OpenSea or Magic Eden."),
        ("Say how many tokens", "One is enough for most communities. The balances of all verified wallets add up."),
        ("Choose the role", "Roles that cannot be given show the reason. Press “Create Rule”, and your members "
         "are checked."),
    )),
    ("Verify your wallet", (
        ("Log in and open “Verify Wallets”", "Every member does this once per wallet, for all servers together."),
        ("Enter the wallet's address", "A personal code appears. It is valid for 24 hours and works for you alone."),
        ("Add the code to your OpenSea bio", "“Open OpenSea Profile” leads to the profile of the address you entered. "
         "Edit its bio, add the code and save. Without an OpenSea profile, choose “Transaction Proof” and send the "
         "transaction that is shown. You sign it in your wallet app and pay the chain's fee."),
        ("Press “Verify Wallet”", "Once the bio shows the code, or the chain confirms the transaction, the wallet is "
         "verified and you get your roles. You can then remove the code from the bio."),
    )),
)  # fmt: skip

QUESTIONS = (
    (f"What does {_NAME} do?", "It gives Discord roles to members who hold certain NFTs, and takes the roles back when "
     "they no longer hold them. Server owners and administrators decide which NFTs lead to which role."),
    ("Do I have to connect my wallet?", "No. You put a code into your OpenSea profile's bio, and nothing is signed. "
     "Or you send a transaction from the wallet to itself: you sign it in your own wallet app and pay the chain's fee. "
     "Nobody should ever ask for your seed phrase or private key."),
    ("Which blockchains are supported?", f"{chain_list()}. A rule "
     "on a chain that this installation has no node for is refused, and the form says so."),
    ("What happens when I sell my NFT?", "Holdings are checked daily, and roles follow buys, sales and transfers. When "
     "you no longer meet any rule for a role, you lose it. Some servers leave a grace time first."),
    ("Can I verify more than one wallet?", "Yes, as many as you own. Their balances add up. A wallet belongs to one "
     "member at a time."),
    ("Is it free?", "Yes. Rules, members and servers are not limited, and nothing has to be paid."),
    ("Which roles can a rule give?", f"Roles below {_BOT}'s own role that carry no dangerous permissions and that no "
     "integration manages. The role also has to be below the highest role of the person who writes the rule, unless "
     "they own the server."),
    ("Which permission does a channel command need?", "/setup, the command that creates a verification channel, "
     "needs Manage Server permission in that server. Rules need more: only the owner and administrators may write "
     "them."),
    ("Why was my role not given?", "Usually for one of three reasons: you have not verified the wallet with the NFT, "
     f"{_BOT}'s role is below the role in Discord's list, or the rule is paused. A server's configuration says which "
     "rules are paused, and why."),
    ("What if a blockchain or OpenSea is down?", "Then nobody loses a role. A failed read counts as unknown, and "
     "unknown changes no role. A role is taken only after a second reading confirms that the NFT is gone."),
)  # fmt: skip


def help_center() -> rx.Component:
    """Return the page /help-center."""
    return reading(
        "Help Center",
        f"How to set {_NAME} up, and answers to common questions.",
        rx.el.section(
            rx.el.h2("Setup guides", class_name="text-2xl font-bold"),
            *[_guide(title, parts) for title, parts in GUIDES],
            id="docs",
            class_name="flex scroll-mt-8 flex-col gap-5",
        ),
        rx.el.section(
            rx.el.h2("Frequently asked questions", class_name="text-2xl font-bold"),
            rx.el.div(*[_question(asked, answer) for asked, answer in QUESTIONS], class_name="flex flex-col gap-3"),
            id="faq",
            class_name="flex scroll-mt-8 flex-col gap-5",
        ),
        _panel(),
        chapter(
            "Still stuck?",
            sentence(
                *_support_chat(),
                link("Write to us", "/contact"),
                ", or ",
                link("log in", LOGIN_PATH),
                " and open your server's Health tab.",
            ),
        ),
    )


def _panel() -> rx.Component:
    """Return how an admin changes the message in the verification channel."""
    return chapter(
        "Change the message in #verify",
        "The owner and administrators of a server can change the panel, the message with the Verify button. Open the "
        "server's configuration, then the tab “Verification channel”. The card “Panel” has these fields, and a preview "
        "of the message in Discord:",
        bullets(
            (
                "Language: of the default texts, the other buttons, the part “Stay safe”, and alerts.",
                f"Title: at most {LONGEST_TITLE} characters.",
                f"Text: at most {LONGEST_DESCRIPTION:,} characters, with Discord's markdown.",
                f"Button label: at most {LONGEST_LABEL} characters. It names the first button; the other two, My roles "
                "and Re-check, cannot be changed.",
                "Colour: the line at the left of the message.",
            )
        ),
        sentence(
            "The title and the text can contain ", code("{server}"), ", ", code("{bot}"), " and ", code("{button}"),
            ". The message shows the server's name, the bot's name and the button label instead. Other names in "
            "braces are refused.",
        ),
        f"The limits are Discord's, and apply after the names are filled in. Title, text and the part “{SAFE_NAME}” "
        f"can have at most {LONGEST_EMBED:,} characters together. That part cannot be changed: it tells members how to "
        "recognise the real bot.",
        "An empty field gets its default. “Save panel” also updates the message that is already posted. “Use the "
        "default texts” fills in all defaults, but does not save them.",
    )  # fmt: skip


def _support_chat() -> tuple[Text, ...]:
    return ("Ask in our ", link("support chat on Discord", SUPPORT_PATH), ". ") if settings().support_invite else ()


def _guide(title: str, parts: tuple[tuple[str, str], ...]) -> rx.Component:
    return rx.el.article(
        rx.el.h3(title, class_name="mb-4 text-lg font-semibold"), steps(parts), class_name="surface guide p-5 sm:p-6"
    )


def _question(asked: str, answer: str) -> rx.Component:
    return rx.el.details(
        rx.el.summary(asked, class_name="cursor-pointer rounded-field font-semibold"),
        rx.el.p(answer, class_name="muted mt-2"),
        class_name="surface question px-5 py-4",
    )
