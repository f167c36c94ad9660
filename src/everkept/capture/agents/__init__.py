"""Coding agents: their hooks and transcripts, read into `domain.session` events."""
