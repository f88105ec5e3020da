"""Suggest conditions: what labelled history says a rule could stop, in the language, for review.

The way: `columns.py` names what a condition may read, `table.py` reads it for every payment through
the one replay, `atoms.py` makes comparisons at round numbers, `search.py` joins them, `judge.py`
counts what they stop in time that the search did not see, `write.py` makes a rule file of them.
"""
