@description('Name of the Cosmos DB account.')
param accountName string

@description('Name of the database.')
param databaseName string

@description('Name of the container for checkpoints.')
param checkpointContainerName string

@description('Name of the container for history.')
param historyContainerName string

@description('Name of the container for sessions.')
param sessionContainerName string

@description('Throughput of new containers: {} on a serverless account or in a database that shares its own, { throughput: 400 } or { autoscaleSettings: { maxThroughput: 1000 } }.')
param containerOptions object = {}

resource account 'Microsoft.DocumentDB/databaseAccounts@2024-11-15' existing = {
  name: accountName
}

resource database 'Microsoft.DocumentDB/databaseAccounts/sqlDatabases@2024-11-15' = {
  parent: account
  name: databaseName
  properties: {
    resource: {
      id: databaseName
    }
  }
}

resource checkpoints 'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers@2024-11-15' = {
  parent: database
  name: checkpointContainerName
  properties: {
    resource: {
      id: checkpointContainerName
      partitionKey: {
        paths: [
          '/tenant_id'
          '/workflow_name'
        ]
        kind: 'MultiHash'
        version: 2
      }
      indexingPolicy: {
        indexingMode: 'consistent'
        automatic: true
        includedPaths: [
          {
            path: '/tenant_id/?'
          }
          {
            path: '/workflow_name/?'
          }
          {
            path: '/type/?'
          }
          {
            path: '/scope/?'
          }
          {
            path: '/sort_key/?'
          }
          {
            path: '/checkpoint_id/?'
          }
          {
            path: '/previous_checkpoint_id/?'
          }
          {
            path: '/payload/keyframe/?'
          }
        ]
        excludedPaths: [
          {
            path: '/*'
          }
        ]
      }
      defaultTtl: -1
    }
    options: containerOptions
  }
}

resource history 'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers@2024-11-15' = {
  parent: database
  name: historyContainerName
  properties: {
    resource: {
      id: historyContainerName
      partitionKey: {
        paths: [
          '/tenant_id'
          '/session_id'
        ]
        kind: 'MultiHash'
        version: 2
      }
      indexingPolicy: {
        indexingMode: 'consistent'
        automatic: true
        includedPaths: [
          {
            path: '/tenant_id/?'
          }
          {
            path: '/session_id/?'
          }
          {
            path: '/type/?'
          }
          {
            path: '/source_id/?'
          }
          {
            path: '/sort_key/?'
          }
        ]
        excludedPaths: [
          {
            path: '/*'
          }
        ]
      }
      defaultTtl: -1
    }
    options: containerOptions
  }
}

resource sessions 'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers@2024-11-15' = {
  parent: database
  name: sessionContainerName
  properties: {
    resource: {
      id: sessionContainerName
      partitionKey: {
        paths: [
          '/tenant_id'
          '/session_id'
        ]
        kind: 'MultiHash'
        version: 2
      }
      indexingPolicy: {
        indexingMode: 'consistent'
        automatic: true
        includedPaths: [
          {
            path: '/tenant_id/?'
          }
          {
            path: '/session_id/?'
          }
          {
            path: '/type/?'
          }
        ]
        excludedPaths: [
          {
            path: '/*'
          }
        ]
      }
      defaultTtl: -1
    }
    options: containerOptions
  }
}

output databaseId string = database.id
