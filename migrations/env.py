"""Runs the revisions on a connection that dbanon hands over, or prints their SQL."""

from alembic import context

from dbanon.db.metadata.tables import metadata
from dbanon.db.schemas import SCHEMA

config = context.config


def include_name(name, type_, _parent_names):
    """Keep autogenerate inside the metadata schema: all else belongs to the user."""
    return name == SCHEMA if type_ == "schema" else True


options = {
    "target_metadata": metadata,
    "version_table_schema": SCHEMA,
    "include_schemas": True,
    "include_name": include_name,
    "transactional_ddl": True,
}

if context.is_offline_mode():
    # Under any other style of parameters, each % of a statement would be printed twice.
    context.configure(
        dialect_name="postgresql",
        dialect_opts={"paramstyle": "named"},
        literal_binds=True,
        **options,
    )
    with context.begin_transaction():
        context.run_migrations()
else:
    context.configure(connection=config.attributes["connection"], **options)
    with context.begin_transaction():
        context.run_migrations()
