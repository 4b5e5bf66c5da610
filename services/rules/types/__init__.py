"""The types of requirements: what each asks for, and the fields that only it has."""
