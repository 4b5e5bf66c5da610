"""The types of requirements: what each asks for, and the fields of its own."""
