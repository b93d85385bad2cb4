targetScope = 'resourceGroup'

@description('Name of the Cosmos DB account.')
param accountName string

@description('Region of a new account.')
param location string = resourceGroup().location

@description('Whether to create the account; an existing one is left as it is.')
param createAccount bool = false

@description('Whether a new account is serverless.')
param serverless bool = true

@description('Whether a new account refuses its keys, so that only identities get in.')
param disableLocalAuth bool = true

@description('Name of the database.')
param databaseName string = 'workflow-state'

@description('Name of the container for checkpoints.')
param checkpointContainerName string = 'checkpoints'

@description('Name of the container for history.')
param historyContainerName string = 'history'

@description('Name of the container for sessions.')
param sessionContainerName string = 'sessions'

@description('Throughput of new containers: {} on a serverless account or in a database that shares its own, { throughput: 400 } or { autoscaleSettings: { maxThroughput: 1000 } }.')
param containerOptions object = {}

@description('Object ids of the identities that may use the database.')
param principalIds array = []

module account 'modules/account.bicep' = if (createAccount) {
  name: 'cosmos-workflow-state-account'
  params: {
    accountName: accountName
    location: location
    serverless: serverless
    disableLocalAuth: disableLocalAuth
  }
}

module database 'modules/database.bicep' = {
  name: 'cosmos-workflow-state-database'
  params: {
    accountName: accountName
    databaseName: databaseName
    checkpointContainerName: checkpointContainerName
    historyContainerName: historyContainerName
    sessionContainerName: sessionContainerName
    containerOptions: containerOptions
  }
  dependsOn: [
    account
  ]
}

module access 'modules/access.bicep' = {
  name: 'cosmos-workflow-state-access'
  params: {
    accountName: accountName
    databaseName: databaseName
    principalIds: principalIds
  }
  dependsOn: [
    database
  ]
}

output databaseId string = database.outputs.databaseId

output roleDefinitionId string = access.outputs.roleDefinitionId
