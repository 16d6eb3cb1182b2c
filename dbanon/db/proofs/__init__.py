"""Proofs in the database: of a release, and of the tables it was made from."""
