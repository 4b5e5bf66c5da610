"""The base of all rows, which names their tables."""

import re

from sqlalchemy.orm import declared_attr
from sqlmodel import SQLModel


class Row(SQLModel):
    """A row of the table that is called as its class, in lower case with underscores: `RoleRefusal`, `role_refusal`."""

    model_config = {"defer_build": True}  # rows are never validated, and each process would make all validators

    @declared_attr  # pyright: ignore[reportArgumentType]
    def __tablename__(cls) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
