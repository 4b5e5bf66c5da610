"""The bot's texts: those of commands and re-checks in `words.py`, those of /verify in `challenge_words.py`.

`replies.py` turns them into messages.
"""
