"""The three answers to a question about holdings, as Kleene's logic knows them."""

from enum import Enum


class Answer(Enum):
    """What is known of a requirement. Unknown is not no."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"
