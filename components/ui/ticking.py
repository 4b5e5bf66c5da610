"""A screen that keeps itself up to date: an event every few seconds, while the page is looked at."""

import reflex as rx
from reflex_base.utils.imports import ImportDict


class Ticking(rx.Fragment):
    """Fires `on_tick` every `every` milliseconds while the page is visible. Belongs inside an rx.memo: timers of
    what is not memoized run as long as the whole page.
    """

    on_tick: rx.EventHandler[rx.event.no_args_event_spec]

    every: int = 5000

    def add_imports(self) -> ImportDict:
        """What its code takes from React."""
        return {"react": ["useEffect"]}

    def add_hooks(self) -> list[str | rx.Var[str]]:
        """The timer."""
        tick = rx.Var.create(self.event_triggers["on_tick"])
        return [
            rx.Var(
                f"""useEffect(() => {{
  const tick = {tick};
  const timer = setInterval(() => {{ if (!document.hidden) tick(); }}, {int(self.every)});
  return () => clearInterval(timer);
}}, []);"""
            )
        ]

    def _exclude_props(self) -> list[str]:
        return [*super()._exclude_props(), "on_tick", "every"]
