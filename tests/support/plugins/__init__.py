"""What every test run has besides the tests: time limits, directories, and the type check."""
