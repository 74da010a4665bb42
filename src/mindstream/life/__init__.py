"""Minds that live: goals, a ledger of tasks, hours and standing orders."""
