-- The rows of a relation by their keys: of whole numbers, those of one key are found sooner so than by hashing.
(SELECT o.*
   FROM {rows} AS o
  ORDER BY {keys})
