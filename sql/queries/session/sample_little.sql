-- Let ANALYZE read few rows of the temporary tables of this transaction: they serve a few statements.
SELECT set_config('default_statistics_target', '10', true)
