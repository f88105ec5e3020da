"""A scorecard's numbers, estimated from labelled history. Needs the extra `fit`.

`labelled.py` reads a file's history and `replay.py` takes it through the engine; `examples.py` has
what is learned from, of a file or of an account's stored labels. `weighed.py` says what each weight
is multiplied with and what curves read, `estimate.py` finds weights, `steps.py` and `curves.py`
curves. `quality.py` judges, `fitting.py` does all of it, `write_curves.py` writes the new text.
"""
