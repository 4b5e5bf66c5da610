"""What a process needs to run: logs, rate limits, schedules, notifications, and the limits it has learnt."""
