"""The real server under load, under kill -9, on a disk that fills, and over a hundred thousand messages."""
