-- Of those who were read and were published before: the cell, how many are in it, and the values of
-- every release that changed them, those of a relation first, and of each the latest first.
SELECT h.place, c.atom, c.members, e.value_ids
  FROM pg_temp.history_places AS h
  JOIN (SELECT s.person, dense_rank() OVER (ORDER BY s.cell) - 1 AS atom,
               count(*) OVER (PARTITION BY s.cell) AS members
          FROM pg_temp.history_cells AS s) AS c ON c.person = h.person
  JOIN (SELECT s.person,
               string_agg(s.value_ids, ';'
                          ORDER BY s.relation IS NOT DISTINCT FROM %(first)s::bigint DESC,
                                   s.release_id DESC) AS value_ids
          FROM (SELECT r.person, r.relation, r.release_id,
                       string_agg(r.value_id::text, ',' ORDER BY r.class, r.value_id) AS value_ids
                  FROM pg_temp.history_entries AS r
                 WHERE r.class <> 0
                 GROUP BY r.person, r.relation, r.release_id) AS s
         GROUP BY s.person) AS e ON e.person = h.person
 ORDER BY h.place
