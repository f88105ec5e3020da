"""The search index, derived from the journal: find payments, related payments, and figures."""
