"""The web application, its REST API, and the supervisor that runs the product on one machine."""
