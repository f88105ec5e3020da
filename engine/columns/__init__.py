"""What happened, as columns: Parquet files that follow the journal, for questions over years.

`columns.py` makes columns of facts, `windows.py` of the aggregates that decisions read, `days.py` finds
the days to write, `write.py` puts files in place, `tables.py` fills them and `export.py` is the way
through.
"""
