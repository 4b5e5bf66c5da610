"""The parts of one server, at `/api/servers/{server_id}/…`: its members, log, health, and its admins' programs."""
