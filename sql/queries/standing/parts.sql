-- The parts of classes that somebody has left.
SELECT t.part, t.class, t.gone, t.persons, t.gone_are_safe, t.others_are_safe, t.is_overdue
  FROM pg_temp.history_touched AS t
 ORDER BY t.part
