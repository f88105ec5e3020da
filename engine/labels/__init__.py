"""Labels: what became known of a payment afterwards, by whom, in the journal's one sequence."""
