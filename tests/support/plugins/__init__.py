"""What every run of the tests has besides the tests: limits of time, and the check of the types."""
