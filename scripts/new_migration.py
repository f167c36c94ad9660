"""Begin the next migration: `python scripts/new_migration.py "add a colour to threads"`, then read and finish its file.

It holds the difference between the migrations so far and `store/tables.py`.
"""

from __future__ import annotations

import sys

from alembic import command
from sqlalchemy import create_engine

from everkept.store.migrate import SCHEMA, alembic_config, revision


def begin(message: str) -> str:
    """Write the file; where it is."""
    config = alembic_config()
    with create_engine("sqlite://").connect() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
        made = command.revision(config, message, autogenerate=True, rev_id=revision(SCHEMA + 1))
    assert made is not None
    assert not isinstance(made, list)
    return str(made.path)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.stdout.write(f"wrote {begin(sys.argv[1])}; now finish it, and set SCHEMA = {SCHEMA + 1} in store/migrate.py\n")
