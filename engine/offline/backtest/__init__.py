"""Backtests: run a candidate over stored history as if it had been live, and compare the decisions.

`candidate.py` is what is tried, `plan.py` what it needs of payments and history; `stored.py` and
`files.py` read the history, of which `engine/facts/fields_read.py` decodes no more than needed;
`planned_windows.py` keeps the aggregates, `replay.py` runs the candidate, `compare.py` counts what
would change, `report.py` makes the report. `backtest.py` calls all of these.
"""
