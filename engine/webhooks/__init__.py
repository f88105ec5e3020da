"""Webhooks: notices of what happened, sent to the addresses that an account has set."""
