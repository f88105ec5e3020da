"""The release after this one, as far as its tables tell: it has added to them all that it may."""

from __future__ import annotations

from tollkeeper.cli import main
from tollkeeper.engine.journal.postgres import schema

ADDED = """
DO $$
DECLARE each regclass;
BEGIN
  FOR each IN SELECT oid FROM pg_class
    WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
  LOOP
    EXECUTE format('ALTER TABLE %s ADD COLUMN added text NOT NULL DEFAULT ''''', each);
  END LOOP;
END $$;
CREATE TABLE added (place bigint PRIMARY KEY);
CREATE INDEX added_by_time ON journal (time);
"""
"""All that an addition may be: a column of each table, an index, a table."""


def next_toll(arguments: list[str]) -> None:
    """The command of the next release, which has added to the tables."""
    schema._MIGRATIONS = (*schema._MIGRATIONS, schema.Migration(ADDED, is_addition=True))
    schema.NEWEST_TABLES = len(schema._MIGRATIONS)
    main(arguments)
