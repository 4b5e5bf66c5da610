"""The sockets of the screens: who may open one, what it may send, and what a closed tab leaves."""
