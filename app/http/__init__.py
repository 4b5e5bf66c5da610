"""The ASGI middleware between the web server and the app: one small class per concern."""
