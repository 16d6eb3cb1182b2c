"""The schema ``dbanon``: its tables, migrations and contents."""
