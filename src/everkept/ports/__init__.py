"""Protocols of what touches the outside: clock, fault points, models, embedders."""
