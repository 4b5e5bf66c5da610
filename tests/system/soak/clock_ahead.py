"""`python -m tests.system.soak.clock_ahead SECONDS MODULE [ARGUMENT …]`: run a module with its clock ahead.

Only reads of the date are ahead. The monotonic clock, which measures pauses, is unchanged, as after a wrong
setting of a real machine's clock.
"""

import datetime
import runpy
import sys
import time
from typing import Any

CLOCK_AHEAD_SECONDS = 65
"""How far the clock of one machine is ahead: more than the minute after which a removal is decided again."""

_Real = datetime.datetime
_time = time.time


class _Meta(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _Real)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, _Real)


def shift(seconds: float) -> None:
    """Let every later import find a clock that is so many seconds ahead."""

    class Ahead(_Real, metaclass=_Meta):
        """A datetime whose now() is ahead; it returns an ordinary datetime."""

        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Any:
            return _Real.now(tz) + datetime.timedelta(seconds=seconds)

    datetime.datetime = Ahead  # type: ignore[misc]
    time.time = lambda: _time() + seconds


def main() -> None:
    """Read the command line and run the module."""
    seconds, module, *arguments = sys.argv[1:]
    shift(float(seconds))
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
