"""Servers as their admins see them: lists, members, activity and its undo, analytics, protection, exports."""
