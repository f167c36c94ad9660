"""The real server on a disk that fills, and over a hundred thousand messages."""
