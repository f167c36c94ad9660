"""`AsyncMemory` and `Memory`, embedded or over HTTP with the same methods."""
