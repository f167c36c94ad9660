"""Asking: candidates, ranking, packing, and why something was found or held back."""
