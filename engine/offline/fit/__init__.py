"""A scorecard's baseline and weights, estimated from labelled history. Needs the extra `fit`.

`labelled.py` reads the history, `replay.py` takes it through the engine, `weighed.py` says what
each weight is multiplied with, `estimate.py` finds the weights, `quality.py` judges them, and
`fitting.py` does all of it and writes the file's new text.
"""
