"""What stands between the socket and the app: one small ASGI middleware per concern."""
