"""A candidate over exported history: in SQL where that says exactly the same, else by the decider.

`exported.py` opens an export, `fact_rows.py` reads facts of it, `translate.py` says conditions in SQL,
`decide_rows.py` decides by both, `replayed.py` gives the replay what windows that nobody recorded
need, and `backtest.py` is the way through.
"""
