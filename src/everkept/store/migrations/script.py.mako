"""${message}."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = ${repr(branch_labels)}
depends_on = ${repr(depends_on)}
# The oldest schema whose programs go on beside this one: its own number where something is taken away or made
# stricter, else what the migration before says.
works_with = ${int(up_revision)}


def upgrade() -> None:
    ${upgrades if upgrades else "pass"}
