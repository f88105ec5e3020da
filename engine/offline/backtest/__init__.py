"""A candidate over stored history, as if it had decided live, against what was decided.

`candidate.py` says what is tried, `plan.py` what it needs of a payment and of history,
`engine/facts/fields_read.py` decodes no more than that, `stored.py` and `files.py` give what
happened in its order, `windows.py` keeps the aggregates, `replay.py` runs all of it, `compare.py`
counts what would change, and `report.py`, `words.py`, `page.py` show it. `backtest.py` is the way
through.
"""
