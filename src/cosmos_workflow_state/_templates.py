"""Resources of Azure as values, and how they are written in Bicep and in ARM's JSON.

Pure. It knows both languages and no resource in particular.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

_INDENT: Final = "  "
_SCHEMA: Final = "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#"


@dataclass(frozen=True, slots=True)
class Expression:
    """What is known only when it is deployed.

    Attributes:
        bicep: As Bicep writes it.
        arm: As ARM writes it, without the brackets around it.
    """

    bicep: str
    arm: str


Value: TypeAlias = "Expression | str | bool | int | Mapping[str, Value] | list[Value] | None"
"""What a template is made of: JSON and expressions."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """What whoever deploys may choose.

    Attributes:
        name: Its name.
        kind: ``string``, ``bool``, ``array`` or ``object``.
        description: What it is, for people.
        default: What it is unless chosen; None for something that must be chosen.
    """

    name: str
    kind: str
    description: str
    default: Any = None

    @property
    def value(self) -> Expression:
        """What was chosen."""
        return Expression(self.name, f"parameters('{self.name}')")


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource.

    Attributes:
        symbol: What the template calls it.
        kind: Its type, without the version.
        version: The version of the type.
        names: Its name after those of the resources above it; the last one is its own.
        body: What it is.
        parent: Symbol of the resource above it.
        condition: The parameter that says whether it is wanted at all.
        each: The parameter whose elements it is repeated for.
        after: The resources that must be there first.
    """

    symbol: str
    kind: str
    version: str
    names: tuple[Expression, ...]
    body: Mapping[str, Any]
    parent: str | None = None
    condition: Parameter | None = None
    each: tuple[Parameter, str] | None = None
    after: tuple[Resource, ...] = ()

    @property
    def id(self) -> Expression:
        """Its resource id."""
        names = ", ".join(name.arm for name in self.names)
        return Expression(f"{self.symbol}.id", f"resourceId('{self.kind}', {names})")


@dataclass(frozen=True, slots=True)
class Template:
    """What is deployed at once.

    Attributes:
        parameters: What can be chosen.
        resources: What it makes, the first ones first.
        outputs: By name, texts that it tells afterwards.
        existing: Resources that others stand under without being made here, by symbol: type, version and name.
    """

    parameters: tuple[Parameter, ...]
    resources: tuple[Resource, ...]
    outputs: Mapping[str, Expression] = field(default_factory=dict[str, Expression])
    existing: Mapping[str, tuple[str, str, Expression]] = field(
        default_factory=dict[str, "tuple[str, str, Expression]"]
    )


def to_bicep(template: Template) -> str:
    """Return the template in Bicep."""
    blocks = [bicep_parameters(template.parameters)]
    blocks += [
        f"resource {symbol} '{kind}@{version}' existing = {bicep_value({'name': name})}"
        for symbol, (kind, version, name) in template.existing.items()
    ]
    blocks += [_bicep_resource(resource, template) for resource in template.resources]
    blocks += [f"output {name} string = {value.bicep}" for name, value in template.outputs.items()]
    return "\n\n".join(blocks) + "\n"


def bicep_parameters(parameters: Iterable[Parameter]) -> str:
    """Return the declarations of parameters in Bicep."""
    return "\n\n".join(map(_bicep_parameter, parameters))


def bicep_value(value: Value, depth: int = 0) -> str:
    """Return a value in Bicep, indented for a line at this depth."""
    if isinstance(value, Expression):
        return value.bicep
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'").replace("${", "\\${") + "'"
    if isinstance(value, Mapping):
        return _braced("{}", [f"{name}: {bicep_value(entry, depth + 1)}" for name, entry in value.items()], depth)
    if isinstance(value, list):
        return _braced("[]", [bicep_value(element, depth + 1) for element in value], depth)
    return json.dumps(value)


def to_arm(template: Template) -> str:
    """Return the template in ARM's JSON."""
    document = {
        "$schema": _SCHEMA,
        "contentVersion": "1.0.0.0",
        "parameters": {parameter.name: _arm_parameter(parameter) for parameter in template.parameters},
        "resources": [_arm_resource(resource) for resource in template.resources],
        "outputs": {name: {"type": "string", "value": f"[{value.arm}]"} for name, value in template.outputs.items()},
    }
    return json.dumps(document, indent=2) + "\n"


def _bicep_parameter(parameter: Parameter) -> str:
    default = "" if parameter.default is None else f" = {bicep_value(parameter.default)}"
    return f"@description({bicep_value(parameter.description)})\nparam {parameter.name} {parameter.kind}{default}"


def _bicep_resource(resource: Resource, template: Template) -> str:
    here = {other.symbol for other in template.resources}
    body = {
        **({} if resource.parent is None else {"parent": Expression(resource.parent, "")}),
        "name": resource.names[-1],
        **resource.body,
    }
    # What a resource refers to is waited for anyway, and the linter of Bicep says so.
    referred = bicep_value(resource.body)
    after = [
        Expression(other.symbol, "")
        for other in resource.after
        if other.symbol in here - {resource.parent} and other.id.bicep not in referred
    ]
    if after:
        body["dependsOn"] = after
    head = f"resource {resource.symbol} '{resource.kind}@{resource.version}' = "
    if resource.condition is not None:
        head += f"if ({resource.condition.name}) "
    if resource.each is None:
        return head + bicep_value(body)
    parameter, element = resource.each
    return f"{head}[for {element} in {parameter.name}: {bicep_value(body)}]"


def _braced(pair: str, entries: Sequence[str], depth: int) -> str:
    if not entries:
        return pair
    inner = _INDENT * (depth + 1)
    return f"{pair[0]}\n" + "".join(f"{inner}{entry}\n" for entry in entries) + f"{_INDENT * depth}{pair[1]}"


def _arm_parameter(parameter: Parameter) -> dict[str, Any]:
    default = {} if parameter.default is None else {"defaultValue": _arm_value(parameter.default)}
    return {"type": parameter.kind, **default, "metadata": {"description": parameter.description}}


def _arm_resource(resource: Resource) -> dict[str, Any]:
    names = [name.arm for name in resource.names]
    path = "/".join(f"{{{number}}}" for number in range(len(names)))
    name = names[0] if len(names) == 1 else f"format('{path}', {', '.join(names)})"
    each = {}
    if resource.each is not None:
        each = {"copy": {"name": resource.symbol, "count": f"[length({resource.each[0].value.arm})]"}}
    return {
        **({} if resource.condition is None else {"condition": f"[{resource.condition.value.arm}]"}),
        **each,
        "type": resource.kind,
        "apiVersion": resource.version,
        "name": f"[{name}]",
        **{name: _arm_value(value) for name, value in resource.body.items()},
        **({"dependsOn": [f"[{other.id.arm}]" for other in resource.after]} if resource.after else {}),
    }


def _arm_value(value: Value) -> Any:
    if isinstance(value, Expression):
        return f"[{value.arm}]"
    if isinstance(value, str):
        # A text in brackets would be read as an expression; behind one bracket alone, another would stay in the text.
        return f"[{value}" if value.startswith("[") and value.endswith("]") else value
    if isinstance(value, Mapping):
        return {name: _arm_value(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [_arm_value(element) for element in value]
    return value
