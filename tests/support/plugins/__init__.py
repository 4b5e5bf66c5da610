"""What every test run has besides the tests: time limits, and the type check."""
