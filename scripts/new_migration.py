"""Begin the next migration: `python scripts/new_migration.py "add a colour to threads"`, then read and finish its file.

It holds the difference between the migrations so far and `store/tables/`.
"""

from __future__ import annotations

import sys

from alembic import command

from everkept.store.migrate import SCHEMA, alembic_config, revision
from everkept.store.migrations.open_connection import engine_over
from everkept.store.sqlite import choose_driver


def begin(message: str) -> str:
    """Write the file; where it is."""
    config = alembic_config()
    raw = choose_driver().module.connect(":memory:", isolation_level=None)
    with engine_over(raw).connect() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
        made = command.revision(config, message, autogenerate=True, rev_id=revision(SCHEMA + 1))
    raw.close()
    assert made is not None
    assert not isinstance(made, list)
    return str(made.path)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.stdout.write(f"wrote {begin(sys.argv[1])}; now finish it, and set SCHEMA = {SCHEMA + 1} in store/migrate.py\n")
