"""A local Cosmos DB for NoSQL: the engine that answers the azure-cosmos client without an account."""
