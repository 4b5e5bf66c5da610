"""The screens' sockets: limits on opening and sending, and what closed tabs leave behind."""
