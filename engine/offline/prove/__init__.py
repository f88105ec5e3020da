"""Proofs about rules: what holds for every payment, or the payment for which it does not.

A checked program is translated into formulas (`encode.py`, with a file for each kind of value and
what is done with it) over one payment (`payment.py`) and what the windows may give
(`relations.py`). A solver looks for a payment (`search.py`) that answers a question
(`questions.py`), and what it finds is decided again by the interpreter and by the compiled
function before anybody sees it (`witness.py`, `replay.py`). Needs the extra `prove`.
"""
