"""The bot's texts: those of commands and re-checks in `sentences.py`, those of /verify in `verify_sentences.py`.

`reply.py` turns them into messages.
"""
