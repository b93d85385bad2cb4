"""The service's face: requests to responses. Must not know of sockets, TLS nor SQLite."""
