"""The tabs of a server: rules, members, activity, health, channels, protected roles."""
