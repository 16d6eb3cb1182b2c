-- Whether this server writes, as a standby does not.
SELECT current_setting('transaction_read_only') = 'off'
