"""A candidate over exported history: in SQL where that says exactly the same, else by the decider.

`exported.py` opens an export, `fact_rows.py` reads facts of it, `translate.py` says conditions in SQL,
`seen.py` finds the payments with what was read of them, `happened.py` and `count_windows.py` count
windows that nobody read, `decide_rows.py` decides, and `backtest.py` is the way through.
"""
