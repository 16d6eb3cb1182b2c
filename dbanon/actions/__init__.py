"""One module per verb, one transaction each; only here the database and the algorithms meet."""
