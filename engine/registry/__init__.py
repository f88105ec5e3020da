"""The configuration: the state folded from the changes in the journal, which are also the audit
log.

An operation checks a request against the state and returns the change to append, or raises one of
`errors.py`. Commands and HTTP requests call the same operations.
"""
