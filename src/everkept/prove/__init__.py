"""The proof, run where it matters: on the user's own disk, what clients were told is held against the file."""
