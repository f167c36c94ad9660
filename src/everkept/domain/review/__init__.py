"""Reviews: what finished sessions show, counted across them, and what to propose from it. Rules only, no I/O."""
