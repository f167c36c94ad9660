"""What is pushed to others: the wiki on disk."""
