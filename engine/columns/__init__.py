"""Exports: an account's history as Parquet files that follow the journal, for analyses over years.

`columns.py` makes columns of facts, `windows.py` of the aggregates that decisions read, `days.py`
finds the days to write, `write.py` writes files, `tables.py` fills them, and `export.py` calls all
of these.
"""
