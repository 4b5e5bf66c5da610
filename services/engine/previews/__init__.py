"""Previews: what a proposed change of rules would do to members, before it is saved."""
