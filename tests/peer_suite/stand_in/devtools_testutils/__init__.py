"""A stand-in for the unpublished helper package that the tests of azure-cosmos import."""
