"""Lists of addresses that arrive inside a rule: taken out first, so that nothing long is checked or logged."""

from collections.abc import Mapping
from typing import Any, cast

from services.core.errors import FieldRefused
from services.rules.types import address_list_text
from services.rules.types.address_list import ADDRESSES
from services.rules.types.address_list_text import ReadList

_DEEPEST = 16
"""Levels of JSON that an expression can have; the parser refuses more."""


class ListReader:
    """Reads each list once, however many conditions have the same object."""

    def __init__(self) -> None:
        # The object itself is kept too, so that no later object gets its id.
        self._known: dict[int, tuple[object, ReadList | FieldRefused]] = {}

    async def read(self, given: object) -> ReadList:
        """Return a list, which is read only once. Each call for a refused list raises FieldRefused or ListRefused."""
        if id(given) not in self._known:
            try:
                self._known[id(given)] = given, await address_list_text.of_items(given)
            except FieldRefused as fault:
                self._known[id(given)] = given, fault
        found = self._known[id(given)][1]
        if isinstance(found, FieldRefused):
            raise found.with_traceback(None)
        return found


class GivenLists:
    """The lists of one rule: `take_out` replaces them by stand-ins, and after `read`, `put_in` by their digests."""

    def __init__(self, reader: ListReader | None = None) -> None:
        self._given: list[object] = []
        self._named: dict[str, ReadList] = {}
        self._reader = reader or ListReader()

    @property
    def addresses(self) -> int:
        """How many addresses the lists have; a list that several conditions have counts once."""
        lists = [cast("list[object]", one) for one in self._given if isinstance(one, list)]
        return sum({id(one): len(one) for one in lists}.values())

    def take_out(self, document: Any, depth: int = 0) -> Any:
        """Return a JSON document with a stand-in for each list in it."""
        if depth > _DEEPEST:
            return document
        if isinstance(document, list):
            return [self.take_out(one, depth + 1) for one in cast("list[Any]", document)]
        if not isinstance(document, Mapping):
            return document
        given = cast("Mapping[str, Any]", document)
        node = {name: self.take_out(one, depth + 1) for name, one in given.items() if name != ADDRESSES}
        if given.get(ADDRESSES) is not None:
            self._given.append(given[ADDRESSES])
            node |= {"list": _stand_in(len(self._given)), "count": 1}
        return node

    async def read(self) -> Mapping[str, ReadList]:
        """Read the lists; return them by their digests. Raises FieldRefused, ListRefused."""
        for number, given in enumerate(self._given, 1):
            self._named[_stand_in(number)] = await self._reader.read(given)
        return {one.digest: one for one in self._named.values()}

    def put_in(self, document: Any) -> Any:
        """Return a document from `take_out` with the digests and counts of the lists."""
        if isinstance(document, list):
            return [self.put_in(one) for one in cast("list[Any]", document)]
        if not isinstance(document, Mapping):
            return document
        node = {name: self.put_in(one) for name, one in cast("Mapping[str, Any]", document).items()}
        if isinstance(name := node.get("list"), str) and (read := self._named.get(name)) is not None:
            node |= {"list": read.digest, "count": read.count}
        return node


async def read_out(document: Any) -> tuple[Any, Mapping[str, ReadList]]:
    """Return a JSON document that names its lists by digests, and these lists. Raises FieldRefused, ListRefused."""
    lists = GivenLists()
    bare = lists.take_out(document)
    read = await lists.read()
    return lists.put_in(bare), read


def _stand_in(number: int) -> str:
    return f"{number:032x}"
