"""The page and its interface over HTTP: documents of recordings, read-only, closed by default."""
