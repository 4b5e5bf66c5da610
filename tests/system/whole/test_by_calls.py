"""The main path from sign-in to the removal of the role by calls alone, as a program uses it."""

from contextlib import closing

import pytest

from tests.support.product import Product
from tests.system.browser.village import village
from tests.system.whole.people import Person, collection, rule, until

STRANGER = "0x" + "5e" * 20


@pytest.mark.parametrize("by_header", [False, True])
def test_a_proof_brings_the_role_and_a_sale_ends_it(product: Product, by_header: bool) -> None:
    here = village(product, "ada", "dave")
    owner, member = here["ada"], here["dave"]
    with (
        closing(Person(product, owner, by_header=by_header)) as ada,
        closing(Person(product, member, by_header=by_header)) as holder,
    ):
        contract = collection(product, f"By-Calls-{member}")
        token = {"contract": contract, "token_id": "7", "to": product.wallet(member)}
        product.control("chains/base/mint", token)
        until(lambda: any(one["botInvited"] for one in ada.get("/api/servers")))
        server_id = ada.server(here.guild)["internalId"]
        made = ada.post("/api/verification-rules", **rule(product, contract, here.guild, "Whale", server_id))
        proved = holder.prove()
        assert (proved["success"], proved["again"]) == (True, False)
        assert proved["message"] == "Your wallet has been successfully verified!"
        until(lambda: "Whale" in product.roles_of(here.guild, member))
        # Discord shows the role shortly before the ledger has the outcome.
        until(lambda: ada.get(f"/api/verification-rules/{made['id']}")["holders"] == 1)

        product.control("chains/base/transfer", {**token, "to": STRANGER})
        until(lambda: "Whale" not in product.roles_of(here.guild, member))

        (wallet,) = holder.get("/api/wallet-verifications")
        holder.delete(f"/api/wallet-verifications/{wallet['id']}")
        ada.delete(f"/api/verification-rules/{made['id']}")
        assert ada.get("/api/verification-rules", serverId=server_id) == []
