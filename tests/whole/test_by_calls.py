"""The main job from sign-in to the role's end by calls alone, as a program does it."""

import pytest

from tests.product import SWEEP_SECONDS, Product
from tests.whole.people import Person, collection, rule, until

GUILD = "Base Builders"
STRANGER = "0x" + "5e" * 20


@pytest.mark.parametrize(("by_header", "member"), [(False, "dave"), (True, "erin")])
def test_a_proof_brings_the_role_and_a_sale_ends_it(product: Product, by_header: bool, member: str) -> None:
    ada, holder = (Person(product, name, by_header=by_header) for name in ("ada", member))
    contract = collection(product, f"By-Calls-{member}")
    token = {"contract": contract, "token_id": "7", "to": product.wallet(member)}
    product.control("chains/base/mint", token)
    server_id = ada.server(GUILD)["internalId"]
    made = ada.post("/api/verification-rules", **rule(product, contract, GUILD, "Whale", server_id))
    proved = holder.prove()
    assert (proved["success"], proved["again"]) == (True, False)
    assert proved["message"] == "Your wallet has been successfully verified!"
    until(lambda: "Whale" in product.roles_of(GUILD, member), 5)
    # Discord shows the role a moment before the ledger has the outcome.
    until(lambda: ada.get(f"/api/verification-rules/{made['id']}")["holders"] == 1, 5)

    product.control("chains/base/transfer", {**token, "to": STRANGER})
    until(lambda: "Whale" not in product.roles_of(GUILD, member), SWEEP_SECONDS + 10)

    (wallet,) = holder.get("/api/wallet-verifications")
    holder.delete(f"/api/wallet-verifications/{wallet['id']}")
    ada.delete(f"/api/verification-rules/{made['id']}")
    assert all(one["id"] != made["id"] for one in ada.get("/api/verification-rules", serverId=server_id))
    ada.close()
    holder.close()
