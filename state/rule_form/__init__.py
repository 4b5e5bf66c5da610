"""The form that adds or edits a rule, with its conditions and the preview."""
