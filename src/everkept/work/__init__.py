"""The job engine: claim, run, renew, finish, and the backstops."""
