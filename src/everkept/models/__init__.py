"""Language models and embedders; every paid reply goes through the journal."""
