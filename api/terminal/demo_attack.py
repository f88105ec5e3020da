"""The parts of the demo that detect its attack and stop it."""

from __future__ import annotations

WATCH = """event payment "Payments, watched for attacks"
  metric refused_cards "Cards of one BIN, refused for small amounts" = distinct(
    payments.method.card.fingerprint by method.card.bin over 10m
    where status in ["declined", "blocked"] and currency == "BRL" and amount < 5
  )

  monitor bin_guessed "Card numbers of one BIN are guessed"
    when refused_cards >= 15
    by method.card.bin
    every 1h
"""
_BLOCKS = """  # What an attack is stopped by until it is over; the console's Contain fills them.
  list blocked_bins: string
  list blocked_devices: string
  list blocked_addresses: ip

  condition blocked "Part of an attack that an analyst has contained"
    when method.card.bin in @blocked_bins
      or device.fingerprint.id in @blocked_devices
      or device.ip_address in @blocked_addresses
    then deny

"""
_FIRST_CONDITION = "  condition trusted "


def with_blocks(rule: str) -> str:
    """Return the starter rule with a first condition that denies contained attacks."""
    return rule.replace(_FIRST_CONDITION, _BLOCKS + _FIRST_CONDITION, 1)
