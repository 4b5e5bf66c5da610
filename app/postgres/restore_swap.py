"""Put a restored database in the place of the embedded one, so that a kill at any moment leaves one of them whole.

`<database>.restoring` is being filled, `<database>.restored` is complete, `<database>.before-<time>` was there before.
"""

import shutil
from pathlib import Path

from app.postgres.account import Say
from app.postgres.process import end_orphans


def unfinished(database: Path) -> Path:
    """Return the directory to restore into, beside the database."""
    return database.with_name(f"{database.name}.restoring")


def put_in_place(database: Path, aside: Path, say: Say) -> None:
    """Make the filled directory the database; move a database that is there already to `aside`."""
    complete = _complete(database)
    unfinished(database).rename(complete)
    had_one = (database / "cluster").exists()
    if database.exists():
        database.rename(aside)
    complete.rename(database)
    if had_one:
        say(f"the database that was there is kept in {aside}; delete it when it is no longer needed")


def is_cut_short(database: Path) -> bool:
    """Return whether a restore was killed between its two moves, or just before them."""
    return _complete(database).exists()


def finish(database: Path, say: Say) -> None:
    """Finish a restore that was killed after it had moved the old database away.

    A database that is in its place is kept: the restore had not begun to replace it, or an update has put it back.
    """
    complete = _complete(database)
    if not complete.exists() or database.exists():
        return
    complete.rename(database)
    say("finished a restore that was cut short; the database that was there is kept beside the new one")


def discard(database: Path) -> bool:
    """Delete what an interrupted restore left behind, and stop its server. Return whether there was anything.

    Call it only while no restore is under way.
    """
    left = [path for path in (unfinished(database), _complete(database)) if path.exists()]
    for path in left:
        end_orphans(path / "cluster")
        shutil.rmtree(path)
    return bool(left)


def finish_or_undo(database: Path, say: Say) -> None:
    """Finish or undo an interrupted restore. Call it only while no restore is under way."""
    finish(database, say)
    if discard(database):
        say("undid a restore that was cut short; the database is the one from before it")


def _complete(database: Path) -> Path:
    return database.with_name(f"{database.name}.restored")
