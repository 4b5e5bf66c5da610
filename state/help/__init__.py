"""The help pages' facts about this installation."""
