"""Commands for releases: ledger, later proofs, access, reports and combined disclosure."""
