"""`python -m sandbox`: serve the sandbox on loopback until it is stopped."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from aiohttp import web

from sandbox.assembly import DEFAULT_PORT, AlreadyRunning, WholeSandbox, product_settings
from sandbox.base import chain_table
from sandbox.server import build_app
from sandbox.tools import ToolMissing

LIVE_KEYS = ("DISCORD_BOT_TOKEN", "DISCORD_CLIENT_ID", "DISCORD_CLIENT_SECRET")


def environment(file: Path) -> dict[str, str]:
    """Return the process's variables on top of those of a `.env` file, if there is one; empty ones count as unset."""
    values: dict[str, str] = {}
    if file.is_file():
        for line in file.read_text().splitlines():
            name, found, value = line.strip().removeprefix("export ").partition("=")
            if found and not name.startswith("#"):
                values[name.strip()] = value.strip().strip("'\"")
    values |= {name: value for name, value in os.environ.items() if value}
    return values


class PortTaken(Exception):
    """Something else answers on the sandbox's port."""


def port_of(environment: Mapping[str, str]) -> int:
    """Return the port to listen on; 0 if SANDBOX_PORT is not one."""
    given = environment.get("SANDBOX_PORT") or str(DEFAULT_PORT)
    return int(given) if given.isascii() and given.isdigit() and len(given) < 6 and int(given) < 2**16 else 0


def refusal_to_run(environment: Mapping[str, str], port: int) -> str | None:
    """Return why the sandbox must not run in this environment (with `.env` applied), or None."""
    own = product_settings(port)
    live = [key for key in LIVE_KEYS if environment.get(key, "") not in ("", own[key])]
    if live and environment.get("SANDBOX") != "1":
        return f"The sandbox does not run beside live credentials ({', '.join(live)} set). SANDBOX=1 insists."
    public_url = environment.get("PUBLIC_URL", "")
    if public_url and _host(public_url) not in ("localhost", "127.0.0.1", "::1"):
        return f"The sandbox serves this machine only, and PUBLIC_URL is {public_url}."
    return None


def _host(url: str) -> str | None:
    """Return the host that a URL names; None if it names none or cannot be read."""
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


async def serve(sandbox: WholeSandbox) -> None:
    """Answer on both loopback addresses until SIGINT or SIGTERM; a machine without IPv6 has only one."""
    runner = web.AppRunner(build_app(sandbox), access_log=None, shutdown_timeout=1)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, "127.0.0.1", sandbox.port).start()
        except OSError as taken:
            raise PortTaken(f"Port {sandbox.port} is taken. SANDBOX_PORT names another.") from taken
        try:
            await web.TCPSite(runner, "::1", sandbox.port).start()
        except OSError as missing:
            logging.getLogger("sandbox").info("no IPv6 loopback: %s", missing)
        print(f"sandbox: {sandbox.url}/console", flush=True)
        stopped = asyncio.Event()
        for sign in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(sign, stopped.set)
        await stopped.wait()
    finally:
        await runner.cleanup()


def main() -> int:
    """Run the sandbox and return 0 after a stop, 2 when it must not run here, 3 when no start can succeed.

    Codes 2 and 3 come with a sentence on stderr. Another sandbox on the same data or a taken port also gives 2. No
    start can succeed while a tool is missing or SANDBOX_EXTRA_CHAINS cannot be read.
    """
    # Other users of the machine must not read its worlds and its nodes' files.
    os.umask(0o077)
    logging.basicConfig(level=os.environ.get("SANDBOX_LOG", "WARNING"), format="sandbox %(levelname)s %(message)s")
    values = environment(Path(".env"))
    port = port_of(values)
    refusal = refusal_to_run(values, port) if port else "SANDBOX_PORT is not a port: a number from 1 to 65535."
    if refusal:
        print(f"sandbox: {refusal}", file=sys.stderr)
        return 2
    try:
        chain_table.check()
    except chain_table.ChainsRefused as refused:
        print(f"sandbox: {refused}", file=sys.stderr)
        return 3
    data = Path(os.environ.get("SANDBOX_DATA") or "data/sandbox")
    without = frozenset(os.environ.get("SANDBOX_WITHOUT", "").replace(",", " ").split())
    public_url = (values.get("PUBLIC_URL") or f"http://localhost:{values.get('PORT') or 3000}").rstrip("/")
    sandbox = WholeSandbox(data, port, without, strict=values.get("SANDBOX_STRICT", "0") == "1", public_url=public_url)
    try:
        asyncio.run(serve(sandbox))
    except (AlreadyRunning, PortTaken) as obstacle:
        print(f"sandbox: {obstacle}", file=sys.stderr)
        return 2
    except ToolMissing as missing:
        print(f"sandbox: {missing}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
