"""Adapters for what hosts a workflow: each module is for one host package, and only it imports that package.

`foundry` is for ``agent-framework-foundry-hosting`` (extra ``foundry-hosting``), `ag_ui` for ``agent-framework-ag-ui``
(extra ``ag-ui``). An adapter says which tenant and scope a request is about; everything else is the storages' own.
"""
