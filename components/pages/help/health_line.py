"""The line that says whether the backend is healthy; the browser itself polls `/health` for it."""

import json

import reflex as rx
from reflex_base.utils.imports import ImportDict

from locales import _
from state.core.timing import HEALTH_POLL_MILLISECONDS

CHECKING, HEALTHY, GONE = "checking", "healthy", "gone"

_LOOK = f"""useEffect(() => {{
  const look = () => fetch("/health", {{ cache: "no-store" }})
    .then((answer) => (answer.ok ? answer.json() : null))
    .then((data) => setBackendHealth(data ? {json.dumps(HEALTHY)} : {json.dumps(GONE)}))
    .catch(() => setBackendHealth({json.dumps(GONE)}));
  look();
  const timer = setInterval(look, {HEALTH_POLL_MILLISECONDS});
  return () => clearInterval(timer);
}}, []);"""


class _HealthText(rx.el.P):
    """A line that polls `/health` at once and every five seconds."""

    def add_imports(self) -> ImportDict:
        """Return the imports of its code from React."""
        return {"react": ["useEffect", "useState"]}

    def add_hooks(self) -> list[str | rx.Var[str]]:
        """Return the line's own state and its timer."""
        return [f"const [backendHealth, setBackendHealth] = useState({json.dumps(CHECKING)});", _LOOK]


@rx.memo
def health_line() -> rx.Component:
    """Return the line with one of the three texts and its icon, kept current."""
    health = rx.Var("backendHealth", _var_type=str)
    return _HealthText.create(
        rx.match(
            health,
            (HEALTHY, rx.icon("circle-check", size=22, class_name="shrink-0 text-success", aria_hidden="true")),
            (GONE, rx.icon("circle-x", size=22, class_name="shrink-0", aria_hidden="true")),
            rx.icon("loader", size=22, class_name="muted shrink-0", aria_hidden="true"),
        ),
        rx.match(
            health,
            (HEALTHY, _("Backend is healthy and running")),
            (GONE, _("Backend not accessible")),
            _("Checking backend status..."),
        ),
        role="status",
        class_name=rx.cond(
            health == GONE,
            "flex items-center gap-2 text-lg font-semibold text-error",
            "flex items-center gap-2 text-lg font-semibold",
        ),
    )
