"""What every part of the sandbox asks of the whole, so that no part imports it."""

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
        """The folder of everything that is kept."""
        ...

    @property
    def port(self) -> int:
        """The port of the one server."""
        ...

    @property
    def url(self) -> str:
        """Where this sandbox is reached, without a slash at the end."""
        ...

    @property
    def public_url(self) -> str:
        """Where the product is, without a slash at the end."""
        ...

    @property
    def strict(self) -> bool:
        """Whether providers have the limits that slow real clients down."""
        ...

    @property
    def settings(self) -> Mapping[str, str]:
        """The settings that `product.env` gives the product."""
        ...

    @property
    def people(self) -> tuple[Person, ...]:
        """The people of the start."""
        ...

    @property
    def traffic(self) -> Traffic:
        """The requests that reached a provider."""
        ...

    @property
    def faults(self) -> Faults:
        """The running faults."""
        ...
