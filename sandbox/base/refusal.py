"""The one way a control call says no."""


class Refusal(Exception):
    """A control call that cannot be done; answered as `{"message": …}` with `status`."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
