"""The part of ClickHouse's HTTP interface that the store uses, on the engine of the package chdb-core.

It accepts a POST of a form with `query` and its bound parameters `param_<name>`, of a statement alone, or of an INSERT in
the argument `query` with its rows in the body; `database` and settings as further arguments; and GET /ping. The engine binds
the parameters. Like the real server, it answers errors with the code in X-ClickHouse-Exception-Code.

usage: clickhouse_front.py PORT FOLDER
"""

import re
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

from chdb.session import Session

# The engine has one connection, and so one current database and one set of settings.
LOCK = threading.Lock()
NAME = re.compile(r"[A-Za-z0-9_]+\Z")
# Settings of the server's HTTP layer, which the library does not have.
OF_HTTP = {"wait_end_of_query"}
# The real server's limits for one value of an argument (http_max_field_value_size) and for an address.
LONGEST_VALUE, LONGEST_ADDRESS = 131072, 1048576


class Refused(Exception):
    """A request that the real server would refuse before it reaches the engine."""


def run(session, arguments, body):
    parameters, settings, database, statement = {}, [], None, b""
    for name, value in arguments:
        if len(value.encode()) > LONGEST_VALUE:
            raise Refused("Code: 1000. Field value too long")
        if name.startswith("param_"):
            parameters[name.removeprefix("param_")] = value
        elif name == "query":
            statement = value.encode()
        elif name == "database":
            database = value
        elif name not in OF_HTTP:
            if not NAME.match(name) or not re.match(r"[A-Za-z0-9_.]*\Z", value):
                raise Refused(f"Code: 115. Setting {name}")
            settings.append(f"{name} = {value}" if value.isdigit() else f"{name} = '{value}'")
    text = (statement + b"\n" + body if statement else body).decode()
    with LOCK:
        session.query("USE {name:Identifier}", params={"name": database or "default"})
        if settings:
            session.query("SET " + ", ".join(settings))
        return session.query(text, "JSONEachRow", params=parameters).bytes() or b""


def fields(body, boundary):
    """Splits a form as browsers send it into names and values."""
    for part in body.split(b"--" + boundary)[1:-1]:
        head, _, value = part.partition(b"\r\n\r\n")
        name = re.search(rb'name="([^"]*)"', head).group(1)
        yield name.decode(), value.removesuffix(b"\r\n").decode()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer(200, b"Ok.\n")

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if len(self.path) > LONGEST_ADDRESS:
            self.answer(400, b"URI too long")
            return
        arguments = parse_qsl(urlsplit(self.path).query, keep_blank_values=True)
        boundary = re.match("multipart/form-data; boundary=(.*)", self.headers.get("Content-Type", ""))
        if boundary:
            arguments, body = arguments + list(fields(body, boundary.group(1).encode())), b""
        try:
            self.answer(200, run(self.server.session, arguments, body))
        except Exception as error:
            text = str(error)
            code = re.search(r"Code: (\d+)", text)
            self.answer(500, text.encode(), code.group(1) if code else "1002")

    def answer(self, status, body, code=None):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if code is not None:
            self.send_header("X-ClickHouse-Exception-Code", code)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def main():
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
    server.session = Session(sys.argv[2])
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
    server.serve_forever()
    server.session.close()


if __name__ == "__main__":
    main()
