"""Discord's side of servers: members, permissions, roles, channels, and Discord's limits.

`bot/gateway/member_lists.py` reads a server's list of members and refuses an incomplete one; `members.py` stores it.
"""
