"""A guard reads as much as the touched classes hold, and not the source."""

from live import SIXES, policy_of, serve

from dbanon.domain.policy import ModelSpec

MODELS = (ModelSpec("k-anonymity", {"k": 2}), ModelSpec("entropy-l-diversity", {"l": 1}))
SCANS = """
SELECT relname, seq_scan
  FROM pg_stat_xact_all_tables
 WHERE relname IN ('people', 'rows_1', 'groups_1')
   AND seq_scan > 0
"""


def test_a_guard_scans_no_table(database):
    serve(database, policy_of(*MODELS), SIXES)
    with database.connect(autocommit=False) as writer:
        writer.execute("UPDATE public.people SET disease = 'new' WHERE ctid = '(0,2)'")
        assert writer.execute(SCANS).fetchall() == []
        version = "SELECT sum(version) FROM dbanon_data.groups_1"
        assert writer.execute(version).fetchone() == (1,)
