-- Which classes each person of a dataset is shown in; persons of one cell are shown alike in all tables.
CREATE TABLE {cells} AS
SELECT p.person, dense_rank() OVER (ORDER BY p.classes) AS cell
  FROM (SELECT m.person, array_agg(m.class ORDER BY m.class) AS classes
          FROM ({members}) AS m
         GROUP BY m.person) AS p
