"""Versioned prompt files and the questions made of them."""
