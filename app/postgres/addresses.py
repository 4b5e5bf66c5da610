"""Addresses of databases that the client cannot read."""

import psycopg


def is_unreadable(fault: psycopg.Error) -> bool:
    """Return whether the client could not read the address of a database.

    Never show the text of such an error: it contains the whole address, with the password.
    """
    return isinstance(fault, psycopg.ProgrammingError) and fault.sqlstate is None
