"""As much of the Hugging Face Hub's protocol as `huggingface_hub` needs to upload a small folder and to download it."""

import base64
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def digest(content: bytes) -> str:
    return hashlib.sha1(content).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """One model, with one commit, in the memory of the server."""

    server: Any

    def log_message(self, *unused: object) -> None:
        self.server.log.append(f"{self.command} {self.path}")

    def answer(self, content: bytes, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        address, files = f"http://{self.headers['Host']}/user/model", self.server.files
        result: dict[str, Any] = {}
        if self.path == "/api/repos/create":
            asked = json.loads(body)  # "private" is how older versions ask
            self.server.private = asked.get("private") or asked.get("visibility") == "private"
            result = {"url": address, "id": "user/model"}
        elif "/preupload/" in self.path:
            asked = json.loads(body)["files"]
            result = {"files": [{"path": f["path"], "uploadMode": "regular", "shouldIgnore": False} for f in asked]}
        elif "/commit/" in self.path:
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "deletedFile":
                    del files[line["value"]["path"]]
                if line["key"] == "file":
                    files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
            result = {"commitUrl": f"{address}/commit/{COMMIT}", "commitOid": COMMIT, "pullRequestUrl": None}
        self.answer(json.dumps(result).encode())

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        files, name = self.server.files, path.partition("/resolve/")[2].partition("/")[2]
        if path.startswith("/api/models/user/model/tree"):
            rows = [
                {"type": "file", "path": n, "size": len(x), "oid": hashlib.sha1(x).hexdigest()}
                for n, x in files.items()
            ]
            self.answer(json.dumps(rows).encode())
        elif path.startswith("/api/models/user/model") and self.server.private is not None:
            siblings = [{"rfilename": name} for name in files]
            self.answer(
                json.dumps(
                    {"id": "user/model", "private": self.server.private, "sha": COMMIT, "siblings": siblings}
                ).encode()
            )
        elif name in files and path.startswith("/user/model/"):
            content = files[name]
            self.answer(content, ETag=f'"{digest(content)}"', X_Repo_Commit=COMMIT)
        else:
            code = "EntryNotFound" if path.startswith("/user/model/") else "RepoNotFound"
            self.answer(b"", 404, X_Error_Code=code)

    do_HEAD = do_GET


@contextmanager
def hub_server() -> Iterator[ThreadingHTTPServer]:
    """A server with `files` (name to content), `log` (requests) and its address for HF_ENDPOINT.

    `private`: of the model; None before it is made.
    """
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.files, server.log, server.private = {}, [], None
    server.address = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
