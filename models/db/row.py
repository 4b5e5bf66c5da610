"""The base of all rows, which names their tables, and the statement that writes rows that may be there already."""

import re
from collections.abc import Mapping, Sequence

from sqlalchemy import ColumnElement
from sqlalchemy.dialects.postgresql import Insert, insert
from sqlalchemy.orm import declared_attr
from sqlmodel import SQLModel


class Row(SQLModel):
    """A row of the table that is called as its class, in lower case with underscores: `RoleRefusal`, `role_refusal`."""

    model_config = {"defer_build": True}  # rows are never validated, and each process would make all validators

    @declared_attr  # pyright: ignore[reportArgumentType]
    def __tablename__(cls) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()


def upsert(
    table: type[Row],
    rows: Sequence[Mapping[str, object]],
    keys: Sequence[str],
    changed: Sequence[str],
    where: ColumnElement[bool] | None = None,
) -> Insert:
    """Return the statement that inserts the rows, and sets the `changed` columns of those whose `keys` are there.

    With `where`, it leaves a stored row as it is unless the row meets this condition.
    """
    new = insert(table).values(rows)
    values = {name: new.excluded[name] for name in changed}
    return new.on_conflict_do_update(index_elements=keys, set_=values, where=where)
