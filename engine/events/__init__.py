"""Events: their types' contracts, metrics and monitors, and the alerts that these raise."""
