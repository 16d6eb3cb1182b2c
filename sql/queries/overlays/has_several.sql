-- Whether somebody was published in several rows.
SELECT EXISTS (SELECT FROM pg_temp.history_before AS b WHERE b.place > 1)
