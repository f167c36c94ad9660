"""The command line: four panels of commands over the use cases of `api`."""
