"""The console's tools."""
