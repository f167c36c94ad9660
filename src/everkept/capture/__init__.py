"""Ways in: messages as they are given, checked and made ready for the journal."""
