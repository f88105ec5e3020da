"""The index derived from the journal: find payments, what is related to them, and figures."""
