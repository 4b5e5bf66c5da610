"""The tool for faults: break a provider for a while, disturb the gateway, and see the requests to each provider."""

from sandbox.assembly import WholeSandbox
from sandbox.base.faults import KINDS, TARGETS
from sandbox.base.sandbox import Sandbox
from sandbox.console.elements.forms import card, choice, field, hidden
from sandbox.console.elements.markup import Markup, el, join
from sandbox.console.elements.place import Place
from sandbox.discord.gateway.tampering import KINDS as DISTURBANCES
from sandbox.marketplaces.plans import LIMITS

REQUESTS = 25
MEANINGS = {
    "down": "down: closes the connection",
    "slow": "slow: answers after 30 s",
    "429": "429: too many requests",
    "500": "500: internal error",
    "empty": "empty: well-formed, but nothing in it",
    "zero": "zero: says balance 0 (nodes)",
    "stale": "stale: data of when it began (nodes, indexers)",
    "malformed": "malformed: broken JSON",
}
METHODS = {"": "any", **{one: one for one in ("GET", "POST", "PUT", "PATCH", "DELETE")}}
TO_EVENTS = dict(
    zip(DISTURBANCES, ("lose them", "send them twice", "swap them with the next", "spoil them"), strict=True)
)
CODES = {
    "4000": "4000: unknown error", "4004": "4004: token refused", "4008": "4008: too many frames",
    "4009": "4009: session timed out", "4014": "4014: intent refused", "1001": "1001: going away",
}  # fmt: skip
SWITCH = {"on": "on, reviewed", "limited": "on, up to 100 servers", "off": "off"}
_UNDONE = "Content, ids and addresses as at the start; chains go forward."


def panel(sandbox: WholeSandbox, place: Place) -> Markup:
    """Return the tool: what is broken, and what can be broken."""
    seconds = field("Seconds", "seconds", "60", inputmode="numeric", required=True)
    guilds = {one.id: one.name for one in sandbox.discord.world.guilds.values()}
    server, servers = choice("Server", "guild", guilds), choice("Server", "guild", {"": "all", **guilds})
    times = field("Times", "times", placeholder="without end", inputmode="numeric")
    until = field("Seconds", "seconds", placeholder="until you end it", inputmode="numeric")
    provider = choice("Provider", "target", TARGETS)
    path = field("Path (with *)", "path", placeholder="*")
    return join(
        el("p", faults_now(sandbox), id="faults-now", data_part=True, class_="wide"),
        card(place, "Break a provider", "faults", choice("Provider", "target", TARGETS),
             choice("How", "kind", {kind: MEANINGS[kind] for kind in KINDS}), seconds, button="Break"),
        card(place, "Answer at will on one route", "faults", hidden(kind="answer"), provider,
             choice("Method", "method", METHODS), path,
             field("Status", "status", "503", inputmode="numeric", required=True),
             field("Body (text or JSON)", "body"), times, until, button="Answer"),
        card(place, "Slow down one route", "faults", hidden(kind="latency"), provider, path,
             field("Milliseconds", "ms", "800", inputmode="numeric", required=True), until, button="Slow down"),
        card(place, "End all faults", "faults", note="Ends every running fault.", button="End them"),
        card(place, "Discord's gateway", "gateway",
             choice("Do", "action", {"drop": "cut every connection", "malformed": "send something malformed"}),
             button="Disturb"),
        card(place, "Silence at the gateway", "gateway", hidden(action="pause"), seconds,
             note="Events wait for so long.", button="Pause"),
        card(place, "Close the gateway", "gateway", hidden(action="close"), choice("With", "code", CODES),
             button="Close"),
        card(place, "Disturb events", "gateway", choice("Do", "action", TO_EVENTS), servers,
             field("Event", "event", placeholder="any"), times, button="Disturb events"),
        card(place, "A server is out", "gateway", hidden(action="unavailable"), server, until,
             note="Discord calls it unavailable and sends none of its events.", button="Take it out"),
        card(place, "A server is back", "gateway", hidden(action="available"), server, button="Bring it back"),
        card(place, "Members intent", "application", choice("Switch", "members_intent", SWITCH),
             button="Set the intent"),
        card(place, "What is left of a limit", "limits", choice("Provider", "target", ("discord", *LIMITS)),
             field("Requests", "left", "0", inputmode="numeric", required=True), seconds,
             note="Discord's limit is on refused requests.", button="Set the limit"),
        card(place, "Whole limits", "limits", note="Every limit begins again.", button="Renew the limits"),
        card(place, "Start again", "reset", note=_UNDONE, button="Put everything back"),
        el("div", now(sandbox), id="panel-now", data_part=True, class_="wide"),
    )  # fmt: skip


def now(sandbox: WholeSandbox) -> Markup:
    """Return what is left of the limits, and the newest requests that reached a provider."""
    return join(_limits(sandbox), _requests(sandbox))


def _limits(sandbox: WholeSandbox) -> Markup:
    limits = sandbox.limits()
    counted = {"discord: refused requests": limits["discord"]["invalid_requests"]}
    counted |= {place: limits[place] for place in LIMITS if place in limits}
    rows = [
        el("li", el("strong", name), f" {one['left']:,} of {one['requests']:,} left, whole in {one['resets_in']:.0f} s")
        for name, one in counted.items()
    ]
    return el("section", el("h3", "Limits"), el("ul", rows, class_="rows"), class_="card")


def _requests(sandbox: WholeSandbox) -> Markup:
    rows = [
        el(
            "tr",
            (el("td", text) for text in (
                one["time"][11:19], one["target"], one["method"], el("code", one.get("rpc_method") or one["path"][:90]),
                str(one["status"] or "none"),
            )),
        )
        for one in sandbox.traffic.newest(REQUESTS)
    ]  # fmt: skip
    head = el("tr", (el("th", text, scope="col") for text in ("Time", "Provider", "Method", "What", "Answer")))
    table = el("table", el("thead", head), el("tbody", rows))
    return el(
        "section",
        el("h3", "Requests that reached a provider"),
        el("div", table, class_="scroll", tabindex="0") if rows else el("p", "None yet.", class_="dim"),
        class_="card",
    )


def faults_now(sandbox: Sandbox) -> Markup:
    """Return the running faults, each with the seconds left."""
    running = sandbox.faults.running()
    chips = [
        el("span", f"{target}: {kind}, {left:.0f} s", class_="chip bad") for target, (kind, left) in running.items()
    ]
    chips += [el("span", told, class_="chip bad") for told in sandbox.faults.routes.running()]
    return join(chips) if chips else el("span", "No fault is running.", class_="dim")
