"""Group a table block by block, without holding all of its rows in memory."""
