"""The parts of one server: its members, its health, and the programs of its admins."""
