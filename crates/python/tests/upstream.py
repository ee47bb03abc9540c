"""A provider on loopback: it asks for one file after the other, and records every request."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


def _chat(body: dict[str, Any], path: str | None, turn: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None if path else "read all"}
    if path:
        call = {"name": "read_file", "arguments": json.dumps({"path": path})}
        message["tool_calls"] = [{"id": f"call_{turn}", "type": "function", "function": call}]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if path else "stop"}
    head = {"id": f"chat_{turn}", "object": "chat.completion", "created": 1, "model": body["model"]}
    return {**head, "choices": [choice], "usage": USAGE}


def _messages(body: dict[str, Any], path: str | None, turn: int) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "text", "text": "read all"}
    if path:
        block = {"type": "tool_use", "id": f"call_{turn}", "name": "read_file", "input": {"path": path}}
    return {
        "id": f"msg_{turn}",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [block],
        "stop_reason": "tool_use" if path else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def _responses(body: dict[str, Any], path: str | None, turn: int) -> dict[str, Any]:
    text = {"type": "output_text", "text": "read all", "annotations": []}
    item: dict[str, Any] = {"type": "message", "role": "assistant", "content": [text]}
    if path:
        arguments = json.dumps({"path": path})
        item = {
            "type": "function_call",
            "call_id": f"call_{turn}",
            "name": "read_file",
            "arguments": arguments,
        }
    return {
        "id": f"resp_{turn}",
        "object": "response",
        "created_at": 1,
        "model": body["model"],
        "status": "completed",
        "output": [{"id": f"item_{turn}", "status": "completed", **item}],
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 1,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 1,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 2,
        },
    }


ANSWERS = {"/v1/chat/completions": _chat, "/v1/messages": _messages, "/v1/responses": _responses}


class Upstream:
    """The provider: `files` are asked for in their order, one a turn, and then it is done."""

    def __init__(self, files: list[str]) -> None:
        self.bodies: list[bytes] = []
        upstream = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                path = self.path.split("?")[0]
                answer = ANSWERS.get(path if path.startswith("/v1") else "/v1" + path)
                if answer is None:
                    self.send_error(404)
                    return
                turn = len(upstream.bodies)
                upstream.bodies.append(body)
                file = files[turn] if turn < len(files) else None
                sent = json.dumps(answer(json.loads(body), file, turn)).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(sent)))
                self.end_headers()
                self.wfile.write(sent)

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
