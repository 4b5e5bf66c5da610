"""The Members tab of a server: a search, the members in pages, and why each has or lacks a role."""

import reflex as rx

from components.pages.server.evidence import requirement_line
from components.pages.server.member_actions import member_actions
from components.pages.server.tab_outlines import list_outline, once_loaded
from components.ui.answer_badge import answer_badge
from components.ui.badge import badge, role_mark
from components.ui.button import button, link_button, page_buttons
from components.ui.card import card
from components.ui.effects.every import every
from components.ui.effects.texts import counted, filled
from components.ui.field import search_input
from components.ui.picture import avatar
from components.ui.placeholders import empty, skeleton
from locales import _
from settings import settings
from state.core.timing import RECHECK_POLL_SECONDS, SEARCH_DEBOUNCE_MILLISECONDS
from state.dashboard.server_page import ServerPageState
from state.server.members import EVERYBODY, MemberRoleView, MemberRowView, MembersState, RoleWhyView, RuleWhyView

_SMALL_ON_PHONES = "btn-sm max-sm:px-2 sm:btn-md"
"""There, two of these buttons fit beside each other."""


def members_tab() -> rx.Component:
    """Return the search, the recheck and the list."""
    return rx.el.div(
        rx.el.div(
            search_input(
                "member-search",
                _("Search members"),
                "min-w-0 flex-1 basis-full lg:basis-64",
                key=MembersState.search_key,
                default_value=MembersState.query,
                placeholder=_("Name or Discord ID"),
                on_change=MembersState.search.debounce(SEARCH_DEBOUNCE_MILLISECONDS),
            ),
            button(
                _("Check everybody again"),
                icon="refresh-cw",
                class_name=_SMALL_ON_PHONES,
                busy=MembersState.checking == EVERYBODY,
                busy_label=_("Checking..."),
                disabled=MembersState.checking != "",
                on_click=MembersState.check_everybody,
            ),
            _download(_("Members as CSV"), "members.csv"),
            _download(_("Everything as JSON"), "export"),
            _download(_("Payout addresses as CSV"), "payout.csv"),
            class_name="mb-5 flex flex-wrap gap-1.5 sm:gap-3",
        ),
        _progress(),
        once_loaded(
            MembersState, MembersState.load, rx.cond(MembersState.rows, _list(), _nobody()), list_outline(6, "h-16")
        ),
    )


def _download(label: str, call: str) -> rx.Component:
    """Return a link to a file of this server, from the call of that name."""
    return link_button(
        label,
        f"/api/servers/{ServerPageState.server_id}/{call}",
        icon="download",
        leaves_app=True,
        download=True,
        class_name=_SMALL_ON_PHONES,
    )


def _progress() -> rx.Component:
    """Return the progress of a recheck."""
    done = MembersState.asked - MembersState.left
    return rx.cond(
        MembersState.checking != "",
        rx.el.div(
            every(RECHECK_POLL_SECONDS, MembersState.follow),
            rx.cond(
                MembersState.checking == EVERYBODY,
                rx.el.div(
                    rx.el.progress(
                        value=done,
                        max=MembersState.asked,
                        class_name="progress progress-primary w-full",
                        aria_label=_("Members checked again"),
                    ),
                    rx.el.p(
                        filled(
                            _("{done} of {asked} members checked again. You can leave this page."),
                            done=done,
                            asked=MembersState.asked,
                        ),
                        class_name="muted text-sm",
                        role="status",
                    ),
                    class_name="mb-5 flex flex-col gap-2",
                ),
            ),
        ),
    )


def _nobody() -> rx.Component:
    return card(
        rx.cond(
            MembersState.query != "",
            rx.fragment(
                empty(
                    "search-x",
                    _("Nobody found"),
                    filled(
                        _("Nobody in this list has a name that contains “{query}”, or has it as their ID."),
                        query=MembersState.query,
                    ),
                ),
                _who_is_listed(),
            ),
            empty(
                "users",
                _("No members known yet"),
                _("{bot} reports the members as soon as it joins the server.").format(bot=settings().bot_name),
                link_button(_("Back to Dashboard"), "/dashboard", kind="primary"),
            ),
        )
    )


def _who_is_listed() -> rx.Component:
    return rx.el.p(
        _(
            "Not every member of the server is in this list. {product} stores only people who logged in or used the "
            "bot, who run this server or are protected in it, or who have a role that a rule or a move names."
        ).format(product=settings().product_name),
        class_name="muted mt-4 text-sm",
    )


def _list() -> rx.Component:
    return rx.el.div(
        rx.el.ul(rx.foreach(MembersState.rows, _member), class_name="surface divide-y divide-base-300 overflow-hidden"),
        rx.el.nav(
            rx.el.p(
                rx.cond(
                    MembersState.pages > 1,
                    counted(
                        "{count} member, page {page} of {pages}",
                        "{count} members, page {page} of {pages}",
                        MembersState.total,
                        page=MembersState.page,
                        pages=MembersState.pages,
                    ),
                    counted("{count} member", "{count} members", MembersState.total),
                ),
                class_name="muted text-sm",
                role="status",
            ),
            rx.cond(
                MembersState.pages > 1,
                page_buttons(
                    _("Previous"),
                    _("Next"),
                    MembersState.turn,
                    first=MembersState.page <= 1,
                    last=MembersState.page >= MembersState.pages,
                ),
            ),
            class_name="mt-4 flex flex-wrap items-center justify-between gap-3",
            aria_label=_("Pages of members"),
        ),
        _who_is_listed(),
    )


def _member(member: rx.vars.ObjectVar[MemberRowView]) -> rx.Component:
    is_open = MembersState.opened == member.id
    return rx.el.li(
        rx.el.button(
            avatar(member.name, member.avatar_url, "size-10"),
            rx.el.span(
                rx.el.span(member.name, dir="auto", class_name="block cut-name font-semibold"),
                rx.el.span(member.wallets, class_name="muted block truncate text-sm"),
                class_name="min-w-0 flex-1 text-start",
            ),
            rx.el.span(
                rx.foreach(member.roles, _tag),
                class_name="order-last flex basis-full flex-wrap gap-2 empty:hidden sm:order-none sm:max-w-[55%] "
                "sm:basis-auto sm:justify-end",
            ),
            rx.icon(
                "chevron-down",
                size=18,
                class_name=rx.cond(is_open, "muted shrink-0 rotate-180", "muted shrink-0"),
                aria_hidden="true",
            ),
            type="button",
            on_click=MembersState.toggle(member.id),
            aria_expanded=is_open,
            aria_controls=f"why-{member.id}",
            class_name="flex w-full flex-wrap items-center gap-3 px-4 py-3 -outline-offset-3 hover:bg-base-200/60",
        ),
        rx.el.div(rx.cond(is_open, _why(member)), id=f"why-{member.id}", class_name="bg-base-200/50 empty:hidden"),
        key=member.id,
    )


def _tag(role: rx.vars.ObjectVar[MemberRoleView]) -> rx.Component:
    return rx.el.span(
        role_mark(role.role_name, role.role_color),
        rx.cond(
            role.granted_by_us,
            rx.el.span(
                rx.icon("badge-check", size=14, class_name="text-primary", aria_hidden="true"),
                rx.el.span(_("given by {product}").format(product=settings().product_name), class_name="sr-only"),
                title=_("Given by {product}").format(product=settings().product_name),
            ),
        ),
        key=role.role_id,
        class_name="inline-flex max-w-full items-center gap-1 rounded-full border hairline px-2.5 py-0.5 text-sm",
    )


def _why(member: rx.vars.ObjectVar[MemberRowView]) -> rx.Component:
    return rx.el.div(
        rx.cond(
            MembersState.why_of == member.id,
            rx.cond(
                MembersState.why,
                rx.el.ul(rx.foreach(MembersState.why, _role), class_name="grid grid-cols-1 gap-4"),
                rx.el.p(
                    _("No rule gives a role here yet."),
                    " ",
                    rx.el.a(_("Add a rule"), href=ServerPageState.add_rule_url, class_name="link font-semibold"),
                    class_name="muted",
                ),
            ),
            rx.cond(
                MembersState.why_fault != "",
                rx.el.div(
                    rx.el.p(MembersState.why_fault, class_name="mb-3 font-medium", role="alert"),
                    button(_("Try Again"), icon="refresh-cw", class_name="btn-sm", on_click=MembersState.why_again),
                ),
                rx.el.div(skeleton("h-5 w-56"), skeleton("mt-3 h-16"), role="status", aria_label=_("Loading")),
            ),
        ),
        member_actions(member),
        class_name="px-4 py-4 sm:ps-[4.25rem]",
    )


def _role(role: rx.vars.ObjectVar[RoleWhyView]) -> rx.Component:
    return rx.el.li(
        rx.el.div(
            rx.el.h3(role_mark(role.name, role.color), class_name="text-base"),
            rx.cond(role.held, badge(role.status, "good"), badge(role.status)),
            class_name="flex flex-wrap items-center gap-x-3 gap-y-1",
        ),
        rx.el.p(
            rx.icon("arrow-right", size=15, class_name="mt-1 shrink-0", aria_hidden="true"),
            rx.el.span(rx.el.span(_("Next:"), class_name="font-semibold"), " ", role.then),
            class_name="mt-1.5 flex gap-1.5 text-sm",
        ),
        rx.cond(
            role.alone,
            button(
                _("Follow the rules again"),
                icon="play",
                class_name="btn-sm mt-2",
                on_click=MembersState.follow_again(MembersState.why_of, role.id),
                aria_label=filled(_("Follow the rules for {role} again"), role=role.name),
            ),
        ),
        rx.cond(
            role.rules,
            rx.el.ul(rx.foreach(role.rules, _rule), class_name="mt-3 grid grid-cols-1 gap-3 border-s-2 hairline ps-4"),
        ),
        key=role.id,
        class_name="surface p-4",
    )


def _rule(rule: rx.vars.ObjectVar[RuleWhyView]) -> rx.Component:
    return rx.el.li(
        rx.el.div(
            rx.el.h4(rx.el.bdi(rule.name), class_name="min-w-0 wrap-anywhere font-medium"),
            answer_badge(rule.outcome),
            class_name="flex flex-wrap items-center gap-x-3 gap-y-1",
        ),
        rx.cond(rule.inactive != "", rx.el.p(rule.inactive, class_name="text-sm font-medium text-warning")),
        # A single condition has the rule's own answer, which is shown above.
        rx.el.ul(
            rx.foreach(rule.lines, lambda line: requirement_line(line, rule.lines.length() > 1)),
            class_name="mt-1.5 grid grid-cols-1 gap-2",
        ),
    )
