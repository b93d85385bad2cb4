"""Storage: SQLite schema, transactions, index terms, ETags, time to live. Must not know of HTTP nor of query texts."""
