"""What `everkept doctor` finds: causes, not symptoms; one file for each place where they lie."""
