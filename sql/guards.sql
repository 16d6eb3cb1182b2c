-- Triggers that guard the source of a live view.

-- name: create_fence
-- Keep the source out of inheritance, because statements on a parent fire no guard. PostgreSQL gives no parent to
-- a table with a row trigger with a transition table; this trigger itself never runs.
CREATE TRIGGER {trigger}
 AFTER DELETE ON {source}
REFERENCING OLD TABLE AS removed
  FOR EACH ROW
  WHEN (false)
EXECUTE FUNCTION {guard}()

-- name: create_guard
-- A guard runs with its owner's rights, because writers of the source have none on the release. Plans are generic,
-- because planning takes longer than running, and use indexes: PostgreSQL overestimates the number of classes in an
-- array, and would scan the source.
CREATE OR REPLACE FUNCTION {guard}()
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = 'force_generic_plan'
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_seqscan = off
SET jit = off
{settings}
AS {body}

-- name: create_route
-- Check every row that is written to a partition, through any relation.
CREATE TRIGGER {trigger}
 AFTER DELETE OR UPDATE ON {source}
   FOR EACH ROW
EXECUTE FUNCTION {guard}({ancestors})

-- name: create_row_trigger
-- Run the guard for every row that replication changes, which fires no statement trigger.
CREATE TRIGGER {trigger}
 AFTER {event} ON {source}
   FOR EACH ROW
EXECUTE FUNCTION {guard}()

-- name: create_trigger
-- Run the guard for every statement of one kind on the source.
CREATE TRIGGER {trigger}
 AFTER {event} ON {source}
  {transition}
   FOR EACH STATEMENT
EXECUTE FUNCTION {guard}()

-- name: disarm_guard
-- Replace the guard of a withdrawn release with a no-op, until its triggers can be dropped.
CREATE OR REPLACE FUNCTION {guard}()
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS 'BEGIN RETURN NULL; END'

-- name: guard_body
-- Re-check the classes that a statement touched, in its own transaction, and hide those that fail.
#variable_conflict use_column
DECLARE
    touched integer[];
BEGIN
    -- A hidden class stays hidden until the next release, whatever becomes of it.
    SELECT array_agg(DISTINCT r.group_id)
      INTO touched
      FROM {rows} AS r
      JOIN ({changed}) AS c ON {changed_is_row}
      JOIN {groups} AS g ON g.group_id = r.group_id AND g.shown;
    IF touched IS NULL THEN
        -- A snapshot older than the release does not see its classes: then nothing was checked.
        IF NOT EXISTS (SELECT FROM {groups} AS g WHERE g.release = {release}) THEN
            RAISE EXCEPTION 'could not serialize access: a live view was published meanwhile'
                USING ERRCODE = 'serialization_failure';
        END IF;
        RETURN NULL;
    END IF;
    -- Two transactions that each take a member of one class must not both count the other's: the
    -- second waits here, then counts with a new snapshot, or under REPEATABLE READ and SERIALIZABLE
    -- fails to serialize, as the row is written and not only locked. Several are taken in order.
    IF cardinality(touched) > 1 THEN
        PERFORM FROM {groups} AS g WHERE g.group_id = ANY (touched) ORDER BY g.group_id FOR UPDATE;
    END IF;
    UPDATE {groups} AS g SET version = g.version + 1 WHERE g.group_id = ANY (touched);
    -- A row that is gone, or whose key, quasi-identifier or subject changed, is no longer whom its
    -- class publishes; and whoever takes its key later is not shown in its place.
    DELETE FROM {rows} AS r USING ({moved}) AS c WHERE {changed_is_row};
    {plain}
    {models}
    RETURN NULL;
END

-- name: guard_first
-- Further rows never break what some rows of a class meet already, so a few are looked at first.
IF EXISTS (SELECT
             FROM unnest(touched) AS t (group_id)
            WHERE NOT EXISTS (SELECT
                                FROM (SELECT m.*
                                        FROM ({members}) AS m
                                       WHERE m.group_id = t.group_id
                                       LIMIT {few}) AS s
                              HAVING {holds})) THEN
{plain}
END IF;

-- name: guard_model
-- Hide what fails one more model, by the arithmetic of its check.
WITH cells AS (
    SELECT v.group_id::bigint << 32 | {part} AS class,
           row_number() OVER () AS value,
           {label} AS label,
           {number} AS number,
           v.members
      FROM (SELECT s.group_id, {others}s.{column} AS s, count(*) AS members
              FROM ({members}) AS s
             WHERE s.group_id = ANY (touched)
             GROUP BY s.group_id, {others}s.{column}) AS v
),
classes AS (
    SELECT class, sum(members) AS members, count(*) AS distinct_values
      FROM cells
     GROUP BY class
),
{arithmetic}
UPDATE {groups} AS g
   SET shown = false
  FROM each_class AS e
 WHERE g.group_id = e.class >> 32
   AND {fails};

-- name: guard_plain
-- Hide what fails k or distinct l.
UPDATE {groups} AS g
   SET shown = false
 WHERE g.group_id = ANY (touched)
   AND NOT EXISTS (SELECT
                     FROM ({members}) AS s
                    WHERE s.group_id = g.group_id
                   HAVING {holds});

-- name: guard_route_body
-- Hide everything when a row of a partition is written that is not where it was on publishing: it
-- may have been reached through a table without guards. The ancestors were noted in the trigger.
BEGIN
    IF ARRAY(SELECT a.relid::oid FROM pg_partition_ancestors(TG_RELID) AS a)
           IS DISTINCT FROM TG_ARGV[0]::oid[] THEN
        UPDATE {groups} AS g SET shown = false, version = g.version + 1 WHERE g.shown;
        IF NOT EXISTS (SELECT FROM {groups} AS g WHERE g.release = {release}) THEN
            RAISE EXCEPTION 'could not serialize access: a live view was published meanwhile'
                USING ERRCODE = 'serialization_failure';
        END IF;
    END IF;
    RETURN NULL;
END

-- name: guard_truncate_body
-- Hide everything: nothing of what was published is left.
BEGIN
    IF NOT EXISTS (SELECT FROM {groups} AS g WHERE g.release = {release}) THEN
        RAISE EXCEPTION 'could not serialize access: a live view was published meanwhile'
            USING ERRCODE = 'serialization_failure';
    END IF;
    UPDATE {groups} SET shown = false, version = version + 1;
    DELETE FROM {rows};
    RETURN NULL;
END
