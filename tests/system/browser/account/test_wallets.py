"""Proving wallets by clicks: a confirmed name, a transaction found automatically, a bio that appears late."""

import hashlib
import json
import re
import urllib.request
import uuid
from collections.abc import Awaitable, Callable
from decimal import Decimal
from typing import Any

import psycopg
from eth_account import Account
from playwright.async_api import Page, expect

from tests.support.databases import plain
from tests.system.browser.conftest import Product, Visitor, eventually

NewVisitor = Callable[..., Awaitable[Visitor]]
CHAIN, TITLE, CONFIRMATIONS = "polygon", "Polygon", 12


async def somebody(product: Product, visit: NewVisitor) -> tuple[Visitor, dict[str, Any]]:
    """Sign in a fresh person and return their browser on the wallet screen, and the person."""
    person = product.control("people", {"username": f"p{uuid.uuid4().hex[:8]}"})
    visitor = await visit()
    await visitor.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await visitor.enter(person["username"], "/wallet-verification")
    await expect(visitor.page.get_by_text("No verified wallets yet")).to_be_visible()
    return visitor, person


def asks(product: Product, method: str, *params: Any) -> Any:
    """Call the chain's node, as a wallet does, and return the result."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    request = urllib.request.Request(
        f"{product.sandbox}/rpc/{CHAIN}", data=body, headers={"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read())["result"]


def signs(product: Product, person: dict[str, Any], value: int) -> None:
    """Send the person's own transaction to themselves, in the newest block and unconfirmed."""
    account = Account.from_key(hashlib.sha256(f"sandbox wallet of {person['id']}".encode()).digest())
    # The transaction that the sandbox sends for a person gives them funds for the fee.
    first = {"from": account.address, "to": account.address, "value_wei": "1"}
    product.control(f"chains/{CHAIN}/send", first)
    signed = account.sign_transaction(
        {
            "to": account.address, "value": value, "gas": 30_000, "maxFeePerGas": 10**10,
            "maxPriorityFeePerGas": 10**9, "chainId": int(asks(product, "eth_chainId"), 16),
            "nonce": int(asks(product, "eth_getTransactionCount", account.address, "latest"), 16),
        }
    )  # fmt: skip
    asks(product, "eth_sendRawTransaction", "0x" + signed.raw_transaction.hex())


def is_watched(product: Product, address: str) -> bool:
    """Return whether the product has noted the account's transactions so far: it finds those that are sent later."""
    with psycopg.connect(plain(product.database_url)) as database:
        watched = database.execute(
            "SELECT 1 FROM trail t JOIN challenge c ON c.id = t.challenge_id WHERE c.address = %s AND t.chain = %s",
            (address, CHAIN),
        )
        return watched.fetchone() is not None


async def copied(page: Page, label: str) -> str:
    """Return the text that the copy button beside a term puts into the clipboard."""
    line = page.locator("dl > div").filter(has_text=label)
    await line.get_by_role("button", name="Copy").click()
    await expect(line.get_by_role("button", name="Copied!")).to_be_visible()
    return await page.evaluate("navigator.clipboard.readText()")


async def test_a_name_is_confirmed_and_its_wallet_is_proved_by_a_transaction_that_is_found_without_a_press(
    product: Product, visit: NewVisitor
) -> None:
    visitor, person = await somebody(product, visit)
    page, address = visitor.page, person["wallets"]["evm"].lower()
    name = f"{person['username']}.eth"
    product.control("chains/ethereum/name", {"name": name, "address": address, "of": address})

    field, verify = page.get_by_label("Wallet Address"), page.get_by_role("button", name="Verify Wallet")
    await expect(verify).to_be_disabled()
    await field.fill(name)
    await expect(page.get_by_text(f"{name} stands for this wallet right now:")).to_be_visible()
    await expect(page.get_by_text(address, exact=True)).to_be_visible()
    await page.get_by_role("button", name="Yes, this is my wallet").click()
    await expect(field).to_have_value(address)

    await page.get_by_label("Verification Method").select_option("Transaction Proof")
    await page.get_by_label("Chain", exact=True).select_option(TITLE)
    await expect(page.get_by_text("exactly, in POL")).to_be_visible()
    await expect(page.get_by_text("Waiting for your transaction.")).to_be_visible()
    assert await copied(page, "Send to") == address
    amount, wei = await copied(page, "exactly, in POL"), await copied(page, "In wei")
    assert Decimal(amount) == Decimal(wei).scaleb(-18)

    await eventually(lambda: is_watched(product, address), "the account is watched")
    signs(product, person, int(wei))
    await expect(page.get_by_text(f"Seen on {TITLE}: ")).to_be_visible()
    product.control(f"chains/{CHAIN}/mine", {"blocks": str(CONFIRMATIONS)})
    await expect(page.get_by_text("Your wallet has been successfully verified!")).to_be_visible()

    await expect(field).to_have_value("")
    await expect(page.get_by_label("Verification Method")).to_have_value("opensea_bio")
    entry = page.get_by_role("listitem").filter(has_text="Verified via transaction")
    await expect(entry.get_by_text(f"{address[:6]}...{address[-4:]}", exact=True)).to_be_visible()
    await expect(entry.get_by_text("Ethereum", exact=True)).to_be_visible()
    await expect(entry.get_by_text(name, exact=True)).to_be_visible()
    await expect(entry.get_by_text(re.compile(r"^\d{1,2} \w+ \d{4}$"))).to_be_visible()

    await entry.get_by_role("button", name="Remove").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_text("It no longer counts for your roles.")).to_be_visible()
    await dialog.get_by_role("button", name="Remove wallet").click()
    await expect(page.get_by_text("Verify your first wallet to start using NFT verification rules")).to_be_visible()


async def test_a_pasted_hash_is_judged_and_a_bio_that_comes_late_is_found_without_a_press(
    product: Product, visit: NewVisitor
) -> None:
    visitor, person = await somebody(product, visit)
    page, address = visitor.page, person["wallets"]["evm"].lower()
    toast = page.get_by_text("Verification Failed")
    await page.get_by_label("Wallet Address").fill(address)
    await page.get_by_label("Verification Method").select_option("Transaction Proof")
    await page.get_by_label("Transaction hash or link").fill("https://etherscan.io/tx/0x12")
    await page.get_by_role("button", name="Verify Wallet").click()
    await expect(toast).to_be_visible()
    await expect(page.locator("main").get_by_text("That is not a transaction hash")).to_be_visible()

    await page.get_by_label("Verification Method").select_option("OpenSea Profile Bio")
    code = await page.locator("ol code").filter(has_text=re.compile(r"holdfast-\w{10}")).inner_text()
    await page.get_by_role("button", name="Verify Wallet").click()
    await expect(page.get_by_text("Checking again automatically.")).to_be_visible()
    product.control(f"opensea/accounts/{address}", {"bio": f"Hello. {code}"}, "PUT")
    await expect(page.get_by_text("Your wallet has been successfully verified!")).to_be_visible()
    await expect(page.get_by_text("Verified via opensea bio")).to_be_visible()
