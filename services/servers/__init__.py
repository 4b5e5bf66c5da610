"""Servers for their admins: lists, members, activity and its undo, analytics, protection, exports."""
