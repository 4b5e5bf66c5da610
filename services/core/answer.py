"""The three answers to a requirement, as in Kleene's three-valued logic."""

from enum import Enum


class Answer(Enum):
    """What is known about a requirement. Unknown is not no."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"
