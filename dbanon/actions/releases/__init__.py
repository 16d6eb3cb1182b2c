"""What is published: the ledger, later proofs, who may read it, what releases reveal together."""
