"""The one exception with which control calls refuse."""


class Refusal(Exception):
    """A control call that cannot be done; answered as `{"message": …}` with `status`."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
