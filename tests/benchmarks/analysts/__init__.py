"""What analysts get out of a published relation, beside what they would get out of the source."""
