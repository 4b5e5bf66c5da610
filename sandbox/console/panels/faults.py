"""The tool for faults: break a provider for a while, disturb the gateway, see which requests reach whom."""

from typing import Any

from sandbox.base.faults import KINDS, TARGETS
from sandbox.base.sandbox import Sandbox
from sandbox.console.elements.forms import card, choice, field, hidden
from sandbox.console.elements.markup import Markup, el, join
from sandbox.console.elements.place import Place
from sandbox.house import WholeSandbox

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
_UNDONE = "Content, ids and addresses as at the start; chains go forward."


def panel(sandbox: WholeSandbox, place: Place) -> Markup:
    """What is broken, and what can be."""
    seconds = field("Seconds", "seconds", "60", inputmode="numeric", required=True)
    return join(
        el("p", faults_now(sandbox), id="faults-now", data_part=True, class_="wide"),
        card(place, "Break a provider", "faults", choice("Provider", "target", TARGETS),
             choice("How", "kind", {kind: MEANINGS[kind] for kind in KINDS}), seconds, button="Break"),
        card(place, "Mend everything", "faults", note="Ends every running fault.", button="End all faults"),
        card(place, "Discord's gateway", "gateway",
             choice("Do", "action", {"drop": "cut every connection", "malformed": "send something malformed"}),
             button="Disturb"),
        card(place, "Silence at the gateway", "gateway", hidden(action="pause"), seconds,
             note="Events wait for so long.", button="Pause"),
        card(place, "Start again", "reset", note=_UNDONE, button="Put everything back"),
        el("div", now(sandbox), id="panel-now", data_part=True, class_="wide"),
    )  # fmt: skip


def now(sandbox: WholeSandbox) -> Markup:
    """The newest requests that reached a provider."""
    log = sandbox.traffic.since(0)
    newest: list[dict[str, Any]] = log["requests"][-REQUESTS:]
    rows = [
        el(
            "tr",
            (el("td", text) for text in (
                one["time"][11:19], one["target"], one["method"], el("code", one.get("rpc_method") or one["path"][:90]),
                str(one["status"] or "none"),
            )),
        )
        for one in reversed(newest)
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
    """The faults that are running, each with the seconds left."""
    running = sandbox.faults.running()
    chips = [
        el("span", f"{target}: {kind}, {left:.0f} s", class_="chip bad") for target, (kind, left) in running.items()
    ]
    return join(chips) if chips else el("span", "No fault is running.", class_="dim")
