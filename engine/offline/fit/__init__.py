"""A scorecard's numbers, estimated from labelled history. Needs the extra `fit`.

`labelled.py` reads a file of labelled payments and `replay.py` scores it; `examples.py` makes the
examples to learn from, of a file or of an account's stored labels. `weighed.py` computes what each
weight is multiplied by and what curves read. `estimate.py` estimates weights, `steps.py` and
`curves.py` curves. `quality.py` measures the result, `fitting.py` calls all of these, and
`write_curves.py` writes the new text.
"""
