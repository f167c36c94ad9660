"""Alembic's environment. It is run by `store/migrate.py` and by `scripts/new_migration.py`, never by hand."""
