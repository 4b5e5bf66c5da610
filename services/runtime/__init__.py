"""What each process needs to run: logs, rate limits, schedules, notifications, and learned provider limits."""
