"""The refusal of a form, at the field that it is about."""

import reflex as rx

from services.core.errors import FieldRefused, HoldfastError
from state.core.toasts import refuse


class FormFault(rx.State, mixin=True):
    """The field that was refused, and why; both empty if none was."""

    fault_field: str = ""
    fault_text: str = ""

    def _clear_fault(self) -> None:
        self.fault_field = self.fault_text = ""

    async def _show_fault(self, title: str, fault: HoldfastError) -> None:
        """Show a refusal at its field, or any other fault in a toast with this title."""
        if isinstance(fault, FieldRefused):
            self.fault_field, self.fault_text = fault.field, fault.message
        else:
            await refuse(self, title, fault.message)
