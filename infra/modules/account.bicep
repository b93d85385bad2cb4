@description('Name of the Cosmos DB account.')
param accountName string

@description('Region of a new account.')
param location string = resourceGroup().location

@description('Whether a new account is serverless.')
param serverless bool = true

@description('Whether a new account refuses its keys, so that only identities get in.')
param disableLocalAuth bool = true

resource account 'Microsoft.DocumentDB/databaseAccounts@2024-11-15' = {
  name: accountName
  location: location
  kind: 'GlobalDocumentDB'
  properties: {
    databaseAccountOfferType: 'Standard'
    locations: [
      {
        locationName: location
        failoverPriority: 0
      }
    ]
    consistencyPolicy: {
      defaultConsistencyLevel: 'Session'
    }
    capabilities: serverless ? [{ name: 'EnableServerless' }] : []
    disableLocalAuth: disableLocalAuth
    minimalTlsVersion: 'Tls12'
  }
}

output endpoint string = account.properties.documentEndpoint
