"""Suggest conditions that would stop the fraud in a labelled history, as a rule file for review.

The steps: `columns.py` names what a condition may read, `table.py` reads that for every payment by
the one replay, `atoms.py` makes comparisons with round numbers, `search.py` combines them,
`judge.py` counts what they stop in a period that the search did not use, `write.py` makes the rule
file.
"""
