"""What the outside calls: each door uses `api` only, and none uses another."""
