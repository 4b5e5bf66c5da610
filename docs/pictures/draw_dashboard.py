"""Draws docs/pictures/monitoring.png: the panels of deploy/monitoring/grafana.json with metrics of the real product.

Runs the product beside the sandbox for some minutes, in which a member sells and buys and a node fails. Prometheus
(`apt-get install prometheus`) collects the metrics and evaluates each panel's expressions. Grafana takes no part.
With `--again` it draws what the last run collected.
"""

import asyncio
import json
import re
import shutil
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Any

from playwright.async_api import async_playwright

from tests.conftest import ROOT, free_port, temporary_dir
from tests.support.product import Product, running
from tests.system.browser.conftest import ARGUMENTS
from tests.system.browser.screens import GUILD
from tests.system.whole.people import Person, collection, rule, until

MADE = ROOT / "docs" / "pictures" / "monitoring.png"
DASHBOARD = ROOT / "deploy" / "monitoring" / "grafana.json"
COLLECTED = ROOT / "data" / "monitoring.json"
MINUTES, STEP, SWEEP_SECONDS = 4, 2, 45
WINDOW = "20s"
"""What stands for Grafana's `$__rate_interval`: ten looks of Prometheus."""
WIDTH, COLUMN, ROW = 1440, 1440 / 24, 30
COLORS = ("#73bf69", "#f2cc0c", "#5794f2", "#ff9830", "#f2495c", "#b877d9", "#8ab8ff", "#ffa6b0", "#c8f2c2", "#fade2a")
NAMED = {"green": COLORS[0], "orange": COLORS[3], "red": COLORS[4]}
STYLE = """
body { margin: 0; background: #111217; color: #ccccdc; font: 13px/1.3 Figtree, system-ui, sans-serif; }
#all { position: relative; } .panel { position: absolute; background: #181b1f; border: 1px solid #2a2d33;
border-radius: 3px; box-sizing: border-box; overflow: hidden; } .title { padding: 6px 10px 0; font-weight: 600; }
.value { font-size: 40px; font-weight: 600; text-align: center; padding-top: 6px; } svg { display: block; }
.legend { padding: 0 10px; font-size: 11px; white-space: nowrap; } .legend i { display: inline-block; width: 12px;
height: 4px; margin: 0 5px 2px 10px; } text { fill: #9a9aab; font-size: 10px; }
"""
Series = tuple[str, list[tuple[float, float]]]
"""A legend, and its points: seconds since 1970 and the value."""


@contextmanager
def prometheus(product: Product, directory: Path) -> Iterator[str]:
    """Run Prometheus over the product's metrics while the block lasts; yield its address."""
    program = shutil.which("prometheus")
    if program is None:
        sys.exit("This needs Prometheus: apt-get install prometheus")
    scraped = {"job_name": "holdfast", "static_configs": [{"targets": [product.url.removeprefix("http://")]}]}
    settings = {"global": {"scrape_interval": f"{STEP}s", "scrape_timeout": f"{STEP}s"}, "scrape_configs": [scraped]}
    (directory / "prometheus.yml").write_text(json.dumps(settings))  # JSON is YAML
    address = f"127.0.0.1:{free_port()}"
    with (directory / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [
                program, f"--config.file={directory}/prometheus.yml", f"--storage.tsdb.path={directory}/metrics",
                f"--web.listen-address={address}",
            ],
            stdout=log, stderr=log,
        )  # fmt: skip
        try:
            yield f"http://{address}"
        finally:
            process.terminate()
            process.wait()


def live(product: Product, seconds: float) -> None:
    """Let a member sell and buy a token, and a node fail for a while, until the time is over."""
    began = time.monotonic()
    ada, carol = Person(product, "ada"), Person(product, "carol")
    contract = collection(product, "Lanterns")
    wallet, other = product.wallet("carol"), product.wallet("dave")
    ada.post("/api/verification-rules", **rule(product, contract, GUILD, "Collector", ada.server(GUILD)["internalId"]))
    carol.prove()
    nft = {"contract": contract, "token_id": "1"}
    product.control("chains/base/mint", {**nft, "to": wallet})
    holds, broken = True, False
    until(lambda: "Collector" in product.roles_of(GUILD, "carol"), 180)
    while (passed := time.monotonic() - began) < seconds:
        if not broken and passed > seconds / 2:
            product.control("faults", {"target": "rpc2:base", "kind": "500", "seconds": 30})
            broken = True
        owner, buyer = (wallet, other) if holds else (other, wallet)
        product.control("chains/base/transfer", {**nft, "from": owner, "to": buyer})
        holds = not holds
        time.sleep(12)
    ada.close()
    carol.close()


def read(address: str, panel: dict[str, Any], start: float, end: float) -> list[Series]:
    """Return the series of a panel's expressions, as Prometheus evaluates them."""
    found: list[Series] = []
    for target in panel["targets"]:
        asked = {"query": target["expr"].replace("$__rate_interval", WINDOW), "start": start, "end": end, "step": STEP}
        with urllib.request.urlopen(f"{address}/api/v1/query_range?{urllib.parse.urlencode(asked)}") as answer:
            for one in json.load(answer)["data"]["result"]:
                labels = one["metric"]
                legend = re.sub(r"\{\{(\w+)\}\}", lambda match, known=labels: known[match[1]], target["legendFormat"])
                found.append((legend, [(float(at), float(value)) for at, value in one["values"]]))
    return found


def colored(panel: dict[str, Any], value: float) -> str:
    """Return the colour of a value by the panel's thresholds."""
    steps = panel["fieldConfig"]["defaults"].get("thresholds", {"steps": [{"color": "green", "value": None}]})["steps"]
    name = [str(step["color"]) for step in steps if step["value"] is None or value >= step["value"]][-1]
    return NAMED.get(name, name)


def said(panel: dict[str, Any], value: float) -> str:
    """Return a value as the panel writes it: by its mappings, or with its unit."""
    defaults = panel["fieldConfig"]["defaults"]
    for mapping in defaults.get("mappings", []):
        if (text := mapping["options"].get(f"{value:g}")) is not None:
            return str(text["text"])
    unit = {"s": " s", "reqps": " req/s"}.get(defaults["unit"], "")
    return f"{value:.3g}{unit}" if value < 1000 else f"{value:,.0f}{unit}"


def stat(panel: dict[str, Any], series: list[Series]) -> str:
    """Return a panel's newest value as HTML."""
    if not series:
        return '<div class="value">No data</div>'
    value = series[0][1][-1][1]
    return f'<div class="value" style="color:{colored(panel, value)}">{escape(said(panel, value))}</div>'


def lines(panel: dict[str, Any], series: list[Series], width: float, height: float, start: float, end: float) -> str:
    """Return a panel's series over time as SVG, with their legend."""
    left, top, bottom = 56.0, 8.0, 18.0
    most = max((value for _, points in series for _, value in points), default=1) or 1
    across, down = width - left - 12, height - top - bottom

    def place(at: float, value: float) -> tuple[float, float]:
        return left + (at - start) / (end - start) * across, top + down * (1 - value / most)

    drawn: list[str] = []
    for share in (0, 0.25, 0.5, 0.75, 1):
        y = place(start, share * most)[1]
        drawn.append(f'<path d="M{left} {y:.1f}H{width - 12:.1f}" stroke="#2a2d33"/>')
        label = escape(said({**panel, "fieldConfig": {"defaults": {"unit": "short"}}}, share * most))
        drawn.append(f'<text x="{left - 6}" y="{y + 3:.1f}" text-anchor="end">{label}</text>')
    for minute in range(MINUTES + 1):
        x = place(start + 60 * minute, 0)[0]
        drawn.append(f'<text x="{x:.1f}" y="{height - 4:.1f}" text-anchor="middle">{minute} min</text>')
    for number, (_, points) in enumerate(series):
        path = "L".join("{:.1f} {:.1f}".format(*place(*point)) for point in points)
        drawn.append(f'<path d="M{path}" fill="none" stroke="{COLORS[number % len(COLORS)]}" stroke-width="1.5"/>')
    legend = "".join(
        f'<i style="background:{COLORS[number % len(COLORS)]}"></i>{escape(name)}'
        for number, (name, _) in enumerate(series)
    )
    return f'<svg width="{width}" height="{height}">{"".join(drawn)}</svg><div class="legend">{legend}</div>'


def states(panel: dict[str, Any], series: list[Series], width: float, height: float, start: float, end: float) -> str:
    """Return a row for each series, coloured by its value at each moment, as SVG."""
    left = 110.0
    row = height / max(1, len(series))
    wide = (width - left - 12) * STEP / (end - start)
    drawn: list[str] = []
    for number, (name, points) in enumerate(series):
        y = number * row
        drawn.append(f'<text x="{left - 8}" y="{y + row / 2 + 3:.1f}" text-anchor="end">{escape(name)}</text>')
        for at, value in points:
            x = left + (at - start) / (end - start) * (width - left - 12 - wide)
            drawn.append(
                f'<rect x="{x:.1f}" y="{y + 1:.1f}" width="{wide + 0.5:.1f}" height="{row - 2:.1f}" '
                f'fill="{colored(panel, value)}" fill-opacity="0.7"/>'
            )
    return f'<svg width="{width}" height="{height}">{"".join(drawn)}</svg>'


def page(dashboard: dict[str, Any], collected: list[list[Series]], start: float, end: float) -> str:
    """Return all panels with their series as an HTML page, at the places that the dashboard gives them."""
    parts: list[str] = []
    lowest = 0
    for panel, series in zip(dashboard["panels"], collected, strict=True):
        at = panel["gridPos"]
        lowest = max(lowest, at["y"] + at["h"])
        width, height = at["w"] * COLUMN - 8, at["h"] * ROW - 8
        if panel["type"] == "stat":
            inside = stat(panel, series)
        elif panel["type"] == "state-timeline":
            inside = states(panel, series, width, height - 36, start, end)
        else:
            inside = lines(panel, series, width, height - 52, start, end)
        parts.append(
            f'<div class="panel" style="left:{at["x"] * COLUMN + 4}px;top:{at["y"] * ROW + 4}px;width:{width}px;'
            f'height:{height}px"><div class="title">{escape(panel["title"])}</div>{inside}</div>'
        )
    return f'<style>{STYLE}</style><div id="all" style="width:{WIDTH}px;height:{lowest * ROW}px">{"".join(parts)}</div>'


async def photograph(html: str) -> None:
    """Save the page as the picture."""
    executable = (ROOT / "data" / "tools" / "browser").read_text().strip()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=executable, args=list(ARGUMENTS))
        shown = await browser.new_page(viewport={"width": WIDTH, "height": 900})
        await shown.set_content(html)
        await shown.locator("#all").screenshot(path=MADE)
        await browser.close()


def main() -> int:
    """Run the product for some minutes unless that is to be drawn again, and draw what Prometheus collected."""
    dashboard = json.loads(DASHBOARD.read_text())
    if "--again" not in sys.argv[1:]:
        with (
            temporary_dir() as directory,
            running(directory, SWEEP_SECONDS) as machine,
            prometheus(machine.product, directory) as address,
        ):
            start = time.time()
            end = start + 60 * MINUTES
            live(machine.product, 60 * MINUTES)
            found = [read(address, panel, start, end) for panel in dashboard["panels"]]
            COLLECTED.write_text(json.dumps({"start": start, "end": end, "series": found}))
    kept = json.loads(COLLECTED.read_text())
    asyncio.run(photograph(page(dashboard, kept["series"], kept["start"], kept["end"])))
    print(f"{MADE.relative_to(ROOT)} has {MADE.stat().st_size} bytes.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
