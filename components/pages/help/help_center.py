"""The help center: three setup guides, ten answers, and how to change the panel."""

import reflex as rx

from components.layout.navigation import LOGIN_PATH, SUPPORT_PATH
from components.layout.text_page import bullets, chapter, code, link, reading, steps
from components.ui.effects.texts import sentence
from locales import _, listed, number
from settings import settings
from state.help.panel_limits import LONGEST_DESCRIPTION, LONGEST_EMBED, LONGEST_LABEL, LONGEST_TITLE, SAFE_NAME
from state.public.chains import evm_titles

_NAME, _BOT = settings().product_name, settings().bot_name

GUIDES = (
    (
        _("Set up your server"),
        (
            (
                _("Log in with Discord"),
                _(
                    "Use the button at the top of any page. Discord asks whether we may know who you are "
                    "and which servers you are in."
                ),
            ),
            (
                _("Add your server"),
                _("Open “Add a server”. It lists the servers where you are the owner or an administrator."),
            ),
            (
                _("Invite {bot}").format(bot=_BOT),
                _("Press “Add {bot}” beside a server. Discord shows what the bot may do before you agree.").format(
                    bot=_BOT
                ),
            ),
            (
                _("Put the bot's role in its place"),
                _(
                    "In Discord's server settings, drag {bot}'s role above every role that your rules give. "
                    "Discord lets nobody give a role above their own."
                ).format(bot=_BOT),
            ),
        ),
    ),
    (
        _("Write your first rule"),
        (
            (_("Open the server's configuration"), _("On the dashboard, press “Configure” on the server's card.")),
            (
                _("Press “Add Rule”"),
                _(
                    "Choose the chain and enter the collection's contract address, or paste the address of "
                    "its page on OpenSea or Magic Eden."
                ),
            ),
            (
                _("Say how many tokens"),
                _("One is enough for most communities. The balances of all verified wallets add up."),
            ),
            (
                _("Choose the role"),
                _("Roles that cannot be given show the reason. Press “Create Rule”, and your members are checked."),
            ),
        ),
    ),
    (
        _("Verify your wallet"),
        (
            (
                _("Log in and open “Verify Wallets”"),
                _("Every member does this once per wallet, for all servers together."),
            ),
            (
                _("Enter the wallet's address"),
                _("A personal code appears. It is valid for 24 hours and works for you alone."),
            ),
            (
                _("Add the code to your OpenSea bio"),
                _(
                    "“Open OpenSea Profile” leads to the profile of the address you entered. Edit its bio, add the "
                    "code and save. Without an OpenSea profile, choose “Transaction Proof” and send the transaction "
                    "that is shown. You sign it in your wallet app and pay the chain's fee."
                ),
            ),
            (
                _("Press “Verify Wallet”"),
                _(
                    "Once the bio shows the code, or the chain confirms the transaction, the wallet is "
                    "verified and you get your roles. You can then remove the code from the bio."
                ),
            ),
        ),
    ),
)

QUESTIONS = (
    (
        _("What does {product} do?").format(product=_NAME),
        _(
            "It gives Discord roles to members who hold certain NFTs, and takes the roles back when "
            "they no longer hold them. Server owners and administrators decide which NFTs lead to which role."
        ),
    ),
    (
        _("Do I have to connect my wallet?"),
        _(
            "No. You put a code into your OpenSea profile's bio, and nothing is signed. Or you send a transaction "
            "from the wallet to itself: you sign it in your own wallet app and pay the chain's fee. Nobody should "
            "ever ask for your seed phrase or private key."
        ),
    ),
    (
        _("Which blockchains are supported?"),
        _(
            "{chains}. A rule on a chain that this installation has no node for is refused, and the form says so."
        ).format(chains=listed([*evm_titles(), "Solana"])),
    ),
    (
        _("What happens when I sell my NFT?"),
        _(
            "Holdings are checked daily, and roles follow buys, sales and transfers. When "
            "you no longer meet any rule for a role, you lose it. Some servers leave a grace time first."
        ),
    ),
    (
        _("Can I verify more than one wallet?"),
        _("Yes. Their balances add up. A wallet belongs to one member at a time."),
    ),
    (_("Is it free?"), _("Yes. Rules, members and servers are not limited, and nothing has to be paid.")),
    (
        _("Which roles can a rule give?"),
        _(
            "Roles below {bot}'s own role that carry no dangerous permissions and that no integration "
            "manages. The role also has to be below the highest role of the person who writes the rule, "
            "unless they own the server."
        ).format(bot=_BOT),
    ),
    (
        _("Which permission does a channel command need?"),
        _(
            "/setup, the command that creates a verification channel, needs Manage Server permission in that server. "
            "Rules need more: only the owner and administrators may write them."
        ),
    ),
    (
        _("Why was my role not given?"),
        _(
            "Usually for one of three reasons: you have not verified the wallet with the NFT, {bot}'s "
            "role is below the role in Discord's list, or the rule is paused. A server's configuration "
            "says which rules are paused, and why."
        ).format(bot=_BOT),
    ),
    (
        _("What if a blockchain or OpenSea is down?"),
        _(
            "Then nobody loses a role. A failed read counts as unknown, and "
            "unknown changes no role. A role is taken only after a second reading confirms that the NFT is gone."
        ),
    ),
)


def help_center() -> rx.Component:
    """Return the page /help-center."""
    return reading(
        _("Help Center"),
        _("How to set {product} up, and answers to common questions.").format(product=_NAME),
        rx.el.section(
            rx.el.h2(_("Setup guides"), class_name="text-2xl font-bold"),
            *[_guide(title, parts) for title, parts in GUIDES],
            id="docs",
            class_name="flex scroll-mt-8 flex-col gap-5",
        ),
        rx.el.section(
            rx.el.h2(_("Frequently asked questions"), class_name="text-2xl font-bold"),
            rx.el.div(*[_question(asked, answer) for asked, answer in QUESTIONS], class_name="flex flex-col gap-3"),
            id="faq",
            class_name="flex scroll-mt-8 flex-col gap-5",
        ),
        _panel(),
        chapter(
            _("Still stuck?"),
            *_support_chat(),
            sentence(
                _("{contact}, or {login} and open your server's Health tab."),
                contact=link(_("Write to us"), "/contact"),
                login=link(_("log in"), LOGIN_PATH),
            ),
        ),
    )


def _panel() -> rx.Component:
    """Return how an admin changes the message in the verification channel."""
    return chapter(
        _("Change the message in #verify"),
        _(
            "The owner and administrators of a server can change the panel, the message with the Verify button. Open "
            "the server's configuration, then the tab “Verification channel”. The card “Panel” has these fields, and "
            "a preview of the message in Discord:"
        ),
        bullets(
            (
                _("Language: of the default texts, the other buttons, the part “Stay safe”, and alerts."),
                _("Title: at most {most} characters.").format(most=LONGEST_TITLE),
                _("Text: at most {most} characters, with Discord's markdown.").format(most=number(LONGEST_DESCRIPTION)),
                _(
                    "Button label: at most {most} characters. It names the first button; the other "
                    "two, My roles and Re-check, cannot be changed."
                ).format(most=LONGEST_LABEL),
                _("Colour: the line at the left of the message."),
            )
        ),
        sentence(
            _(
                "The title and the text can contain {server}, {bot} and {button}. The message shows the server's name, "
                "the bot's name and the button label instead. Other names in braces are refused."
            ),
            server=code("{server}"),
            bot=code("{bot}"),
            button=code("{button}"),
        ),
        _(
            "The limits are Discord's, and apply after the names are filled in. Title, text and the "
            "part “{safe}” can have at most {most} characters together. That part "
            "cannot be changed: it tells members how to recognise the real bot."
        ).format(safe=_(SAFE_NAME), most=number(LONGEST_EMBED)),
        _(
            "An empty field gets its default. “Save panel” also updates the message that is already posted. “Use the "
            "default texts” fills in all defaults, but does not save them."
        ),
    )


def _support_chat() -> tuple[rx.Component, ...]:
    if not settings().support_invite:
        return ()
    return (sentence(_("Ask in our {chat}."), chat=link(_("support chat on Discord"), SUPPORT_PATH)),)


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
