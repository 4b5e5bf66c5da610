"""What people decide about their data: preferences, export, erasure; and how long data is kept."""
