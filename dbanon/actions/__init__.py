"""One module per verb: where the database and the algorithms meet, each verb one transaction."""
