"""Moving a whole memory from one database to another while it is used (docs/adr/0023).

The SQL here is written as plain text for each database, and not as constants of the store: `tests/contract/
test_move_killed.py` stops a move before each statement that it executes.
"""
