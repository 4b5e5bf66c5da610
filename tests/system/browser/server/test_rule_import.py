"""Rules of another bot by clicks: pasted, explained, created in shadow, and activated together after a preview."""

import json
import uuid
from collections.abc import Awaitable, Callable
from contextlib import closing

from playwright.async_api import expect

from tests.system.browser.barriers import THEMES, grave_faults
from tests.system.browser.conftest import Product, Visitor, eventually
from tests.system.browser.village import village
from tests.system.whole.people import Person

NewVisitor = Callable[..., Awaitable[Visitor]]


async def test_another_bots_rules_are_pasted_reported_made_and_activated(product: Product, visit: NewVisitor) -> None:
    here = village(product, "ada", "erin")
    erin, slug = here["erin"], uuid.uuid4().hex
    deploy = {"standard": "ERC721", "name": "Kelp Keepers", "slug": slug}
    kelp = product.control("chains/base/deploy", deploy)["contract"]
    product.control("chains/base/mint", {"contract": kelp, "token_id": "1", "to": product.wallet(erin)})
    with closing(Person(product, erin)) as person:
        person.prove()
    nft = {"type": "ERC721", "chainId": 8453, "contractAddress": kelp}
    rules = [
        nft | {"minToken": "1", "roleName": "Collector", "name": "Keepers"},
        nft | {"minToken": "5", "roleName": "Whale", "name": "Big keepers"},
        {"type": "POAP", "eventId": "1", "chainId": 100, "roleName": "Holder", "name": "An event"},
    ]
    # Fading colours would be measured midway.
    ada = await visit()
    page = ada.page
    await ada.enter(here["ada"], here.rules)
    document, look = page.get_by_label("Document"), page.get_by_role("button", name="Look at the rules")
    await document.fill('{"rules": [}')
    await look.click()
    await expect(page.get_by_role("alert").filter(has_text="This is not JSON: line 1")).to_be_visible()
    # The browser itself logs the refused call.
    assert ["400" in fault for fault in ada.faults] == [True]
    ada.faults.clear()

    await document.fill(json.dumps({"rules": rules}))
    await look.click()
    offered = page.get_by_role("list", name="Rules to make")
    await expect(offered.get_by_text("Keepers → Collector", exact=True)).to_be_visible()
    await expect(offered.get_by_text("At least 5 tokens of Kelp Keepers on Base")).to_be_visible()
    await expect(page.get_by_role("list", name="Skipped").get_by_text("It asks for a POAP")).to_be_visible()
    for theme, only in THEMES:
        await page.emulate_media(color_scheme=theme)
        assert await grave_faults(page, only=only) == [], theme
    # Somebody else has made one of them since: it says why it is not made again.
    with closing(Person(product, here["ada"])) as person:
        order = {"source": "collabland", "document": {"rules": rules[1:2]}, "apply": True}
        person.post(f"/api/servers/{person.server(here.guild)['internalId']}/import", **order)
    await page.get_by_role("button", name="Make 2 rules in shadow").click()
    await expect(page.get_by_text("1 rule is made, in shadow.")).to_be_visible()
    skipped = page.get_by_role("list", name="Skipped")
    await expect(skipped.get_by_text("The server has this rule already")).to_be_visible()
    await page.get_by_role("button", name="Close", exact=True).last.click()
    rule = page.get_by_role("listitem").filter(has_text="At least 1 token of Kelp Keepers")
    await expect(rule.get_by_text("Shadow", exact=True)).to_be_visible()
    assert "Collector" not in product.roles_of(here.guild, erin)

    await page.get_by_role("button", name="What all of them would do").click()
    question = page.get_by_role("dialog")
    await expect(question.get_by_role("definition").first).to_have_text("1")
    await expect(question.get_by_text("Looked at")).to_be_hidden()
    await question.get_by_role("button", name="Activate 2 rules").click()
    await expect(rule.get_by_text("Active", exact=True)).to_be_visible()
    await eventually(lambda: "Collector" in product.roles_of(here.guild, erin), "erin gets the role")

    async with page.expect_download() as started:
        await page.get_by_role("link", name="Export rules").click()
    path = await (await started.value).path()
    exported = json.loads(path.read_text())
    assert [(one["ruleName"], one["state"]) for one in exported["rules"]] == [
        ("Big keepers", "active"), ("Keepers", "active"),
    ]  # fmt: skip
