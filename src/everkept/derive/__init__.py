"""What is made of events: one file per job, and the pure work that the jobs share."""
