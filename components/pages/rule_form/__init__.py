"""The form that adds or edits a rule."""
