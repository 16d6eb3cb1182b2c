-- Whether the next release shows somebody no more.
SELECT EXISTS (SELECT FROM pg_temp.history_departed AS d)
