"""Proofs about rules: what holds for every payment, or the payment for which it does not.

A checked program is translated into formulas (`encode.py`), a solver looks for a payment that
answers a question (`questions.py`), and what it finds is decided again by the interpreter and by
the compiled function before anybody sees it (`witness.py`). Needs the extra `prove`.
"""
