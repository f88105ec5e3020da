"""Nodes under faults: what breaks, what clients request meanwhile, and what must hold of the
result.
"""
