"""The laboratory: throw-away machines to try things on. It may use every other room; only commands use it."""
