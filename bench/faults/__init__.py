"""Nodes under faults: what breaks, what clients ask meanwhile, and what must be true of it all."""
