"""Messages of a chat, one with every kind of content, and providers of the framework's to compare with."""

from __future__ import annotations

import json
import random
from typing import Any, Final, get_args

from agent_framework import Content, Message
from agent_framework._types import ContentType

NAMES: Final = {"call_id": "call-1", "id": "id-1", "name": "lookup", "tool_name": "search", "server_name": "mcp"}
_TEXT: Final = Content.from_text(
    "said \u00e9 \U0001f600 \ud800", additional_properties={"n": 2**70, "nan": float("nan")}
)
_CALL: Final = Content.from_function_call("call-1", "lookup", arguments={"city": "Köln", "big": 2**53 + 1})
_IMAGE: Final = Content.from_uri("https://example.com/a.png", media_type="image/png")

CONTENTS: Final[dict[str, Content]] = {
    "text": Content.from_text("hi", annotations=[{"type": "citation", "title": "t", "url": "https://example.com"}]),
    "text_reasoning": Content.from_text_reasoning(text="because", protected_data="sealed"),
    "data": Content.from_data(b"\x00\xff" * 50, "application/octet-stream", name="blob"),
    "uri": _IMAGE,
    "error": Content.from_error(message="broken", error_code="500", error_details="why"),
    "function_call": _CALL,
    "function_result": Content.from_function_result("call-1", result={"rows": [1, None, {"x": [True, 0.1]}]}),
    "usage": Content.from_usage({"input_token_count": 3, "output_token_count": 2**60, "special": 7}),
    "hosted_file": Content.from_hosted_file("file-1", media_type="text/csv", name="a.csv"),
    "hosted_vector_store": Content.from_hosted_vector_store("store-1"),
    "code_interpreter_tool_call": Content.from_code_interpreter_tool_call(call_id="c", inputs=[_TEXT]),
    "code_interpreter_tool_result": Content.from_code_interpreter_tool_result(call_id="c", outputs=[_TEXT, _IMAGE]),
    "image_generation_tool_call": Content.from_image_generation_tool_call(image_id="i"),
    "image_generation_tool_result": Content.from_image_generation_tool_result(image_id="i", outputs=_IMAGE),
    "mcp_server_tool_call": Content.from_mcp_server_tool_call("c", "search", server_name="mcp", arguments={"q": "x"}),
    "mcp_server_tool_result": Content.from_mcp_server_tool_result("c", output=[_TEXT, {"plain": "json"}]),
    "search_tool_call": Content.from_search_tool_call("c", tool_name="web", arguments="{}", status="completed"),
    "search_tool_result": Content.from_search_tool_result("c", tool_name="web", result=["a"], items=[_TEXT]),
    "shell_tool_call": Content.from_shell_tool_call(call_id="c", commands=["ls"], timeout_ms=10, max_output_length=5),
    "shell_tool_result": Content.from_shell_tool_result(
        call_id="c", outputs=[Content.from_shell_command_output(stdout="out", exit_code=0)]
    ),
    "shell_command_output": Content.from_shell_command_output(stdout="o", stderr="e", exit_code=1, timed_out=False),
    # Made without the methods that the framework marks as experimental.
    "computer_tool_call": Content("computer_tool_call", id="i", call_id="c", actions=[{"type": "click", "x": 1}]),
    "computer_tool_result": Content("computer_tool_result", call_id="c", screenshot=_IMAGE),
    "function_approval_request": Content.from_function_approval_request("id-1", _CALL),
    "function_approval_response": Content.from_function_approval_response(
        approved=True, id="id-1", function_call=_CALL
    ),
    "oauth_consent_request": Content.from_oauth_consent_request("https://example.com/consent"),
}
"""By type, a content of every type that the framework knows."""

CONTENT_TYPES: Final[tuple[str, ...]] = get_args(ContentType)


def said(text: str, role: str = "user", **fields: Any) -> Message:
    """Return a message with a text."""
    return Message(role, [text], **fields)


def turn(number: int, *, with_ids: bool = False) -> list[Message]:
    """Return what is said in one turn of a conversation."""
    ids = (f"in-{number}", f"out-{number}") if with_ids else (None, None)
    question = f"question {number}: {'what of it? ' * 10}"
    answer = f"answer {number}: {'that and this. ' * 20}"
    return [said(question, message_id=ids[0]), said(answer, "assistant", message_id=ids[1])]


def incompressible(size: int, *, seed: int = 0) -> str:
    """Return a text of so many bytes that no codec makes much shorter."""
    return "".join(map(chr, random.Random(seed).choices(range(33, 127), k=size)))


def texts(messages: list[Message]) -> list[str]:
    """Return what messages say."""
    return [message.text for message in messages]


def written(messages: list[Message]) -> str:
    """Return messages as the framework writes them: equal to another list's exactly where nothing was lost."""
    return json.dumps([message.to_dict() for message in messages], sort_keys=True)
