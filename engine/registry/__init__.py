"""What is configured: a fold over the journal's changes, which read back are the audit log.

An operation checks what is asked against the state and returns the change to append, or raises
one of `errors.py`. Commands and HTTP requests call the same ones.
"""
