"""The bot's texts: those of commands and re-checks in `words.py`, those of /verify in `verify_words.py`.

`reply.py` turns them into messages.
"""
