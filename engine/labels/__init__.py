"""Labels: verdicts on payments that arrive later, with their source, in the journal's one sequence."""
