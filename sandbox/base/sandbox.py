"""What every part of the sandbox needs from the whole, so that no part imports the whole."""

from pathlib import Path

from sandbox.base.faults import Faults
from sandbox.base.people import PEOPLE
from sandbox.base.traffic import Traffic


class Sandbox:
    """The settings and registers that all parts share.

    Everything is kept in the folder `data`. `strict` gives every provider the limits that slow real clients down.
    `public_url` is the product's address, without a trailing slash. `settings` are those that `product.env` gives the
    product, `people` those at the start.
    """

    def __init__(self, data: Path, port: int, settings: dict[str, str], *, strict: bool, public_url: str) -> None:
        self.data, self.port, self.strict, self.public_url = data, port, strict, public_url
        self.settings, self.people = settings, PEOPLE
        self.traffic = Traffic()
        """The requests that reached a provider."""
        self.faults = Faults()
        """The running faults."""

    @property
    def url(self) -> str:
        """The address of this sandbox, without a trailing slash."""
        return f"http://localhost:{self.port}"
