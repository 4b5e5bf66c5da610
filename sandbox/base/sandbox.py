"""What every part of the sandbox needs from the whole, as a protocol, so that no part imports the whole."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from sandbox.base.faults import Faults
from sandbox.base.people import Person
from sandbox.base.traffic import Traffic


class Sandbox(Protocol):
    """The settings and registers that all parts share."""

    @property
    def data(self) -> Path:
        """The folder in which everything is kept."""
        ...

    @property
    def port(self) -> int:
        """The port of the one server."""
        ...

    @property
    def url(self) -> str:
        """The address of this sandbox, without a trailing slash."""
        ...

    @property
    def public_url(self) -> str:
        """The address of the product, without a trailing slash."""
        ...

    @property
    def strict(self) -> bool:
        """Whether providers apply the limits that slow real clients down."""
        ...

    @property
    def settings(self) -> Mapping[str, str]:
        """The settings that `product.env` gives the product."""
        ...

    @property
    def people(self) -> tuple[Person, ...]:
        """The people at the start."""
        ...

    @property
    def traffic(self) -> Traffic:
        """The requests that reached a provider."""
        ...

    @property
    def faults(self) -> Faults:
        """The running faults."""
        ...
