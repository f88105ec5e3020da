"""Notices: what happened, told to the addresses that an account set."""
