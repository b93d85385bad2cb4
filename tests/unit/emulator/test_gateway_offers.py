"""Throughput through the gateway: asked for, read, changed."""

from __future__ import annotations

import json

import pytest

from support.service import COLLECTION, QUERY, Service, content, definition, outcome

SCALING = {"x-ms-cosmos-offer-autopilot-settings": json.dumps({"maxThroughput": 4000})}


async def offers_of(service: Service, link: str) -> list[dict[str, object]]:
    """Query the offers of a resource as the client does."""
    query = {"query": "SELECT * FROM root r WHERE r.resource=@link", "parameters": [{"name": "@link", "value": link}]}
    found: list[dict[str, object]] = content(await service.send("POST", "/offers", query, QUERY))["Offers"]
    return found


async def create(service: Service, name: str, headers: dict[str, str]) -> str:
    """Create a container and give its link."""
    response = await service.send("POST", "/dbs/db/colls/", definition(id=name), headers)
    assert response.status == 201
    return str(content(response)["_self"])


async def test_containers_have_throughput(service: Service) -> None:
    """A container has 400 RU/s unless its creator says otherwise."""
    (usual,) = await offers_of(service, content(await service.send("GET", COLLECTION))["_self"])
    assert usual["content"] == {"offerThroughput": 400, "offerIsRUPerMinuteThroughputEnabled": False}
    (large,) = await offers_of(service, await create(service, "large", {"x-ms-offer-throughput": "12000"}))
    assert large["content"] == {"offerThroughput": 12000, "offerIsRUPerMinuteThroughputEnabled": False}
    assert content(await service.send("GET", f"/{large['_self']}")) == large
    assert content(await service.send("GET", "/offers"))["_count"] == 2


async def test_scaling_throughput(service: Service) -> None:
    """A throughput that scales is given back as it was asked for, with its increment if there is one."""
    (plain,) = await offers_of(service, await create(service, "plain", SCALING))
    assert plain["content"] == {
        "offerThroughput": 400,
        "offerIsRUPerMinuteThroughputEnabled": False,
        "offerAutopilotSettings": {"maxThroughput": 4000},
    }
    settings = {"maxThroughput": 1000, "autoUpgradePolicy": {"throughputPolicy": {"incrementPercent": 5}}}
    headers = {"x-ms-cosmos-offer-autopilot-settings": json.dumps(settings)}
    (growing,) = await offers_of(service, await create(service, "growing", headers))
    content_of_growing = growing["content"]
    assert isinstance(content_of_growing, dict)
    assert content_of_growing["offerAutopilotSettings"] == settings


async def test_databases_may_share_theirs(service: Service) -> None:
    """A container in a database with throughput has none of its own, unless it asks for it."""
    made = content(await service.send("POST", "/dbs", {"id": "shared"}, {"x-ms-offer-throughput": "500"}))
    assert len(await offers_of(service, made["_self"])) == 1
    assert await offers_of(service, content(await service.send("GET", "/dbs/db/"))["_self"]) == []
    for headers, count in (({}, 0), ({"x-ms-offer-throughput": "400"}, 1)):
        body = definition(id=f"c{count}")
        container = content(await service.send("POST", "/dbs/shared/colls/", body, headers))
        assert len(await offers_of(service, container["_self"])) == count
    assert (await service.send("DELETE", "/dbs/shared/")).status == 204
    assert content(await service.send("GET", "/offers"))["_count"] == 1


async def test_throughput_is_replaced(service: Service) -> None:
    """A throughput is changed within its kind, under the same _rid, and goes with its container."""
    (offer,) = await offers_of(service, content(await service.send("GET", COLLECTION))["_self"])
    path = f"/{offer['_self']}"
    changed = await service.send("PUT", path, offer | {"content": {"offerThroughput": 500}})
    assert content(changed)["content"]["offerThroughput"] == 500
    assert changed.headers["etag"] == content(changed)["_etag"] != offer["_etag"]
    scaled = {"content": {"offerAutopilotSettings": {"maxThroughput": 1000}}}
    assert outcome(await service.send("PUT", path, scaled)) == (400, None)
    assert outcome(await service.send("PUT", path, {"content": 1})) == (400, None)
    assert content(await service.send("GET", path)) == content(changed)
    (scaling,) = await offers_of(service, await create(service, "scaling", SCALING))
    changed = await service.send("PUT", f"/{scaling['_self']}", scaled)
    assert content(changed)["content"]["offerThroughput"] == 100
    await service.send("DELETE", COLLECTION)
    assert outcome(await service.send("GET", path)) == (404, None)


@pytest.mark.parametrize(
    "headers",
    [
        {"x-ms-offer-throughput": "399"},
        {"x-ms-offer-throughput": "450"},
        {"x-ms-offer-throughput": "1000100"},
        {"x-ms-offer-throughput": "many"},
        {"x-ms-offer-throughput": '"400"'},
        {"x-ms-offer-throughput": "400"} | SCALING,
        {"x-ms-cosmos-offer-autopilot-settings": "1000"},
        {"x-ms-cosmos-offer-autopilot-settings": "{}"},
        {"x-ms-cosmos-offer-autopilot-settings": '{"maxThroughput":1500}'},
        {"x-ms-cosmos-offer-autopilot-settings": '{"maxThroughput":2000000}'},
        {
            "x-ms-cosmos-offer-autopilot-settings": '{"maxThroughput":1000,"autoUpgradePolicy":{"throughputPolicy":'
            '{"incrementPercent":101}}}'
        },
    ],
    ids=str,
)
async def test_wrong_throughput(service: Service, headers: dict[str, str]) -> None:
    """A throughput that is not allowed is refused, and nothing is created."""
    assert outcome(await service.send("POST", "/dbs", {"id": "x"}, headers)) == (400, None)
    assert outcome(await service.send("POST", "/dbs/db/colls/", definition(id="x"), headers)) == (400, None)
    assert (await service.send("GET", "/dbs/x/")).status == 404
