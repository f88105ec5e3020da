"""Backtests over exports: in SQL where that gives exactly the same, else by the decider.

`exported.py` opens an export, `fact_rows.py` reads facts, `translate.py` translates conditions to
SQL, `seen.py` selects the payments with their recorded windows, `happened.py` and
`count_windows.py` count windows that no decision read, `decide_rows.py` decides, and `backtest.py`
calls all of these.
"""
