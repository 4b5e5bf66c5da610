"""The dashboard, the list of servers to add the bot to, and the form that adds one by hand."""
