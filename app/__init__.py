"""The front door: the web application, its REST API, and the supervisor that runs everything on one machine."""
