"""What commands show: pure functions from values to lines, or to JSON. No I/O, no clock, no settings."""
