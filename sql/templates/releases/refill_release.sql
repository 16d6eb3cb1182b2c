-- Fill the private copy anew. Whoever looks with an older snapshot still sees the rows of before.
INSERT INTO {release}
{served}
