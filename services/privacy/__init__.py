"""What a person decides about their data: preferences, export, erasure, and how long things are kept."""
