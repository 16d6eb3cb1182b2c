-- What the codes of sensitive values stand for, each a combination of them; only within publishing.
CREATE TEMPORARY TABLE {codes} (
    code integer NOT NULL,
    value jsonb NOT NULL
)
ON COMMIT DROP
