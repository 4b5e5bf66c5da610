"""The three answers to a requirement, as in Kleene's three-valued logic."""

from enum import Enum


class Answer(Enum):
    """The answer to a requirement. UNKNOWN is not the same as NO."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"
