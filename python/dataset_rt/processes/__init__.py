"""Spawned processes that each write whole sources: `write` is the way in."""
