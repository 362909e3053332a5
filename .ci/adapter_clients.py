"""Third-party clients and servers with two adapters between them: Apache Thrift, zeep, requests, curl.

    python3 .ci/adapter_clients.py QUINTAIN

Each part starts a service, its adapter and its client's adapter, calls through both, and checks the requests that the service
received. Prints a line for each part. Exits with 1 if one failed. Skips clients that are not installed.
"""

import contextlib
import hashlib
import http.server
import json
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading

from parts import end, part

quintain = sys.argv[1]
contracts = pathlib.Path(__file__).resolve().parent.parent / "contracts"


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Adapter:
    """A process of `quintain adapter`, which ends with its part."""

    def __init__(self, stack, name, contract, protocols, tables):
        self.folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        config = self.folder / "adapter.toml"
        head = f'name = "{name}"\ncontract = "{contract}"\nadmin = "127.0.0.1:0"\nproxy = "127.0.0.1:0"\nallow = ["127.0.0.1:*"]\n'
        config.write_text(head + protocols + tables)
        self.reports = open(self.folder / "reports", "w+b")
        self.process = subprocess.Popen([quintain, "adapter", config], stdout=self.reports, stderr=subprocess.PIPE, text=True)
        stack.callback(self.end)
        self.at, said = {}, []
        for line in self.process.stderr:
            if line == "ready\n":
                return
            said.append(line)
            what, _, address = line.strip().rpartition(": ")
            self.at[what] = address
        raise RuntimeError("".join(said))

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(timeout=20)
        self.reports.seek(0)
        return self.reports.read().decode()

    def end_listed(self, unlisted):
        """Ends the adapter. Returns its output without the note about the unlisted operation."""
        note = f"has no operation `{unlisted}`: its calls pass unchecked"
        return "\n".join(line for line in self.end().splitlines() if line and note not in line)

    def metrics(self):
        import urllib.request

        with urllib.request.urlopen(f"http://{self.at['admin']}/metrics", timeout=20) as answer:
            return answer.read().decode()


def pair(stack, contract, protocols, service, endpoint):
    adapters = f"127.0.0.1:{free_port()}"
    table = f'service = "{service}"\nendpoint = "{endpoint}"\n'
    server = Adapter(stack, "server", contract, protocols, f'[[providing]]\n{table}adapters = "{adapters}"\n')
    client = Adapter(stack, "client", contract, protocols, f'[[consuming]]\n{table}peer = "{adapters}"\n')
    return client, server, client.at[f"consuming {endpoint}"]


def asked(adapter, count):
    found = int(next(line for line in adapter.metrics().splitlines() if line.startswith("quintain_adapter_calls_total ")).split()[1])
    assert found == count, f"{found} calls were asked, expected {count}"


class Echo(http.server.BaseHTTPRequestHandler):
    """Responds with the length and the hash of the request body, or with the body."""

    protocol_version = "HTTP/1.1"

    def body(self):
        if self.headers.get("transfer-encoding") == "chunked":
            parts = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("content-length", 0)))

    def answer(self):
        body = self.body()
        if self.path.startswith("/chunked"):
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for at in range(0, len(body), 5000):
                piece = body[at : at + 5000]
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.write(b"0\r\n\r\n")
            return
        told = json.dumps({"path": self.path, "bytes": len(body), "sha256": hashlib.sha256(body).hexdigest(), "meta": "whip" in self.headers})
        out = body if self.path.startswith("/same") else told.encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(out)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(out)

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do_PATCH = answer

    def log_message(self, *_):
        pass


def http_service(stack, handler=Echo):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    stack.callback(server.shutdown)
    return server.server_address[1]


ECHO = """contract 1
service Echo {
    POST "/told"(body) { ensures fine: result.code == 200 && !result.body.meta }
    POST "/same"(body) { ensures fine: result.code == 200 }
    POST "/chunked"(body) { ensures fine: result.code == 200 }
    GET "/told"(args) { requires few: !has(args.a) || int(args.a) < 10  ensures fine: result.code == 200 }
}
"""


def echo(stack):
    folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
    (folder / "echo.contract").write_text(ECHO)
    endpoint = f"http://127.0.0.1:{http_service(stack)}"
    return *pair(stack, folder / "echo.contract", '[protocols.Echo]\nkind = "rest"\n', "Echo", endpoint), endpoint


big = bytes((at * 7 + (at >> 8)) & 255 for at in range(10_000_000))


@part("requests")
def _(stack):
    import requests

    client, server, at, endpoint = echo(stack)
    with requests.Session() as session:
        for number in range(20):
            assert session.get(f"http://{at}/told", params={"a": number % 10}, timeout=20).json()["path"] == f"/told?a={number % 10}"
        assert session.post(f"http://{at}/same", json={"a": "ä"}, timeout=20).json() == {"a": "ä"}
        assert session.post(f"http://{at}/told", data=iter([big[:5_000_000], big[5_000_000:]]), timeout=60).json()["sha256"] == hashlib.sha256(big).hexdigest()
        assert session.post(f"http://{at}/chunked", data=big, timeout=60).content == big
        assert session.get(f"http://{at}/told?a=10", timeout=20).status_code == 200
        proxied = session.get(f"{endpoint}/told?a=1", proxies={"http": f"http://{client.at['proxy']}"}, timeout=20)
        assert proxied.json()["path"] == "/told?a=1"
    asked(client, 23)
    assert "Failed precondition" in server.end(), "the call with a = 10 is reported"
    return "20 calls on one connection, 10 MB in chunks both ways, as a forward proxy, one breach told"


@part("curl")
def _(stack):
    if shutil.which("curl") is None:
        raise ImportError("curl is not installed")
    client, server, at, endpoint = echo(stack)
    file = stack.enter_context(tempfile.NamedTemporaryFile())
    file.write(big)
    file.flush()

    def curl(*args):
        done = subprocess.run(["curl", "-sS", "--max-time", "60", *args], capture_output=True, timeout=90)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    sha256 = hashlib.sha256(big).hexdigest()
    assert json.loads(curl(f"http://{at}/told", "--data-binary", f"@{file.name}"))["sha256"] == sha256
    assert json.loads(curl(f"http://{at}/told", "-H", "Transfer-Encoding: chunked", "--data-binary", f"@{file.name}"))["sha256"] == sha256
    assert curl(f"http://{at}/chunked", "--data-binary", f"@{file.name}") == big
    # curl waits for permission to send the body (Expect: 100-continue).
    assert curl(f"http://{at}/same", "-H", "Expect: 100-continue", "--data-binary", "[1]") == b"[1]"
    assert json.loads(curl("-x", f"http://{client.at['proxy']}", f"{endpoint}/told"))["path"] == "/told"
    assert json.loads(curl("-p", "-x", f"http://{client.at['proxy']}", f"{endpoint}/told?a=2"))["path"] == "/told?a=2"
    assert b"HTTP/1.1 200" in curl("-I", f"http://{at}/told")
    assert client.end_listed("HEAD /told") == server.end_listed("HEAD /told") == ""
    return "10 MB with a length and in chunks, Expect, as a forward proxy, through a tunnel, HEAD"


THRIFT = """
exception NoSuchKey { 1: string key }
service Keys {
  binary get(1: string key) throws (1: NoSuchKey missing)
  void put(1: string key, 2: binary value)
  i64 size(1: list<string> keys, 2: map<string, i32> weights, 3: set<i64> numbers, 4: double factor)
  oneway void poke(1: string key)
}
"""
KEYS = """contract 1
service Keys {
    get(key: text) -> bytes { requires given: key != "" }
    put(key: text, value: bytes);
    size(keys: list<text>, weights: any, numbers: list<int>, factor: float) -> int { ensures enough: result >= len(keys) }
    poke(key: text);
}
"""


@part("Apache Thrift")
def _(stack):
    from thrift.protocol.TBinaryProtocol import TBinaryProtocol, TBinaryProtocolFactory
    from thrift.protocol.TCompactProtocol import TCompactProtocol, TCompactProtocolFactory
    from thrift.Thrift import TApplicationException, TMessageType, TType
    from thrift.transport import TSocket
    from thrift.transport.THttpClient import THttpClient
    from thrift.transport.TTransport import TBufferedTransport, TBufferedTransportFactory, TFramedTransport, TFramedTransportFactory, TMemoryBuffer

    # These calls replace the Processor classes of generated code, so no Thrift compiler is needed.
    store, poked = {}, threading.Event()

    def handle(incoming, outgoing):
        name, kind, sequence = incoming.readMessageBegin()
        arguments = read_struct(incoming)
        incoming.readMessageEnd()
        if name == "poke":
            poked.set()
            return
        field = None
        if name == "get":
            known = arguments[1] in store
            field = (TType.STRING, 0, store.get(arguments[1])) if known else (TType.STRUCT, 1, arguments[1])
        elif name == "put":
            store[arguments[1]] = arguments[2]
        elif name == "size":
            field = (TType.I64, 0, len(arguments[1]) + len(arguments[2]) + len(arguments[3]))
        if name not in ("get", "put", "size"):
            outgoing.writeMessageBegin(name, TMessageType.EXCEPTION, sequence)
            TApplicationException(TApplicationException.UNKNOWN_METHOD, "no such method").write(outgoing)
        else:
            outgoing.writeMessageBegin(name, TMessageType.REPLY, sequence)
            outgoing.writeStructBegin("result")
            if field:
                outgoing.writeFieldBegin("field", field[0], field[1])
                if field[0] == TType.STRUCT:
                    outgoing.writeStructBegin("NoSuchKey")
                    outgoing.writeFieldBegin("key", TType.STRING, 1)
                    outgoing.writeString(field[2])
                    outgoing.writeFieldEnd()
                    outgoing.writeFieldStop()
                    outgoing.writeStructEnd()
                elif field[0] == TType.I64:
                    outgoing.writeI64(field[2])
                else:
                    outgoing.writeBinary(field[2])
                outgoing.writeFieldEnd()
            outgoing.writeFieldStop()
            outgoing.writeStructEnd()
        outgoing.writeMessageEnd()
        outgoing.trans.flush()

    def read(protocol, kind):
        if kind == TType.STRUCT:
            return read_struct(protocol)
        if kind in (TType.LIST, TType.SET):
            begin, end = (protocol.readListBegin, protocol.readListEnd) if kind == TType.LIST else (protocol.readSetBegin, protocol.readSetEnd)
            of, count = begin()
            items = [read(protocol, of) for _ in range(count)]
            end()
            return items
        if kind == TType.MAP:
            key, value, count = protocol.readMapBegin()
            pairs = {read(protocol, key): read(protocol, value) for _ in range(count)}
            protocol.readMapEnd()
            return pairs
        if kind == TType.STRING:
            raw = protocol.readBinary()
            try:
                return raw.decode()
            except UnicodeDecodeError:
                return raw
        return {TType.BOOL: protocol.readBool, TType.I32: protocol.readI32, TType.I64: protocol.readI64, TType.DOUBLE: protocol.readDouble}[kind]()

    def read_struct(protocol):
        fields = {}
        protocol.readStructBegin()
        while True:
            _, kind, number = protocol.readFieldBegin()
            if kind == TType.STOP:
                break
            fields[number] = read(protocol, kind)
            protocol.readFieldEnd()
        protocol.readStructEnd()
        return fields

    def arguments_of(protocol, name, key):
        def field(kind, number, write):
            protocol.writeFieldBegin("x", kind, number)
            write()
            protocol.writeFieldEnd()

        protocol.writeStructBegin("args")
        if name == "size":
            def items(begin, end, kind, values, write):
                begin(kind, len(values))
                for value in values:
                    write(value)
                end()

            def weights():
                protocol.writeMapBegin(TType.STRING, TType.I32, 1)
                protocol.writeString("a")
                protocol.writeI32(-1)
                protocol.writeMapEnd()

            field(TType.LIST, 1, lambda: items(protocol.writeListBegin, protocol.writeListEnd, TType.STRING, ["a", "b"], protocol.writeString))
            field(TType.MAP, 2, weights)
            field(TType.SET, 3, lambda: items(protocol.writeSetBegin, protocol.writeSetEnd, TType.I64, [1, 2, 3], protocol.writeI64))
            field(TType.DOUBLE, 4, lambda: protocol.writeDouble(0.5))
        elif name != "nothing":
            field(TType.STRING, 1, lambda: protocol.writeString(key))
            if name == "put":
                field(TType.STRING, 2, lambda: protocol.writeBinary(big if key == "big" else b"\xff\x00value"))
        protocol.writeFieldStop()
        protocol.writeStructEnd()

    def call(protocol, name, key="", oneway=False):
        protocol.writeMessageBegin(name, TMessageType.ONEWAY if oneway else TMessageType.CALL, 7)
        arguments_of(protocol, name, key)
        protocol.writeMessageEnd()
        protocol.trans.flush()
        if oneway:
            return None
        found, kind, sequence = protocol.readMessageBegin()
        assert found == name and sequence == 7
        if kind == TMessageType.EXCEPTION:
            error = TApplicationException()
            error.read(protocol)
            protocol.readMessageEnd()
            raise error
        result = read_struct(protocol)
        protocol.readMessageEnd()
        return result

    def scenario(protocol, is_http):
        store.clear()
        poked.clear()
        assert call(protocol, "get", "a") == {1: {1: "a"}}, "a declared exception"
        assert call(protocol, "put", "a") == {}
        assert call(protocol, "get", "a") == {0: b"\xff\x00value"}
        assert call(protocol, "size") == {0: 6}
        try:
            call(protocol, "nothing")
            raise AssertionError("no such method")
        except TApplicationException as error:
            assert error.type == TApplicationException.UNKNOWN_METHOD
        if not is_http:
            call(protocol, "poke", "a", oneway=True)
        assert call(protocol, "put", "big") == {}
        assert call(protocol, "get", "big") == {0: big}
        assert is_http or poked.wait(20)

    folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
    (folder / "keys.contract").write_text(KEYS)
    (folder / "keys.thrift").write_text(THRIFT)
    ways = []
    for protocols, make in (("binary", (TBinaryProtocolFactory, TBinaryProtocol)), ("compact", (TCompactProtocolFactory, TCompactProtocol))):
        for transport, wrap in (("framed", (TFramedTransportFactory, TFramedTransport)), ("unframed", (TBufferedTransportFactory, TBufferedTransport))):
            listener = TSocket.TServerSocket("127.0.0.1", 0)
            listener.listen()
            port = listener.handle.getsockname()[1]

            def serve(listener=listener, make=make, wrap=wrap):
                while accepted := listener.accept():
                    def one(accepted=accepted):
                        protocol = make[0]().getProtocol(wrap[0]().getTransport(accepted))
                        with contextlib.suppress(Exception):  # End of the connection.
                            while True:
                                handle(protocol, protocol)

                    threading.Thread(target=one, daemon=True).start()

            threading.Thread(target=serve, daemon=True).start()
            table = f'[protocols.Keys]\nkind = "thrift"\nidl = "{folder}/keys.thrift"\n'
            client, server, at = pair(stack, folder / "keys.contract", table, "Keys", f"127.0.0.1:{port}")
            host, through = at.rsplit(":", 1)
            opened = TSocket.TSocket(host, int(through))
            opened.setTimeout(60_000)
            protocol = make[1](wrap[1](opened))
            opened.open()
            scenario(protocol, False)
            opened.close()
            assert client.end_listed("nothing") == server.end_listed("nothing") == "", f"{protocols}, {transport}"
            ways.append(f"{protocols} {transport}")

    class OverHttp(Echo):
        def do_POST(self):
            outgoing = TMemoryBuffer()
            handle(TBinaryProtocol(TMemoryBuffer(self.body())), TBinaryProtocol(outgoing))
            out = outgoing.getvalue()
            self.send_response(200)
            self.send_header("Content-Type", "application/x-thrift")
            self.send_header("Content-Length", str(len(out)))
            self.end_headers()
            self.wfile.write(out)

    endpoint = f"http://127.0.0.1:{http_service(stack, OverHttp)}/keys"
    table = f'[protocols.Keys]\nkind = "thrift-http"\nidl = "{folder}/keys.thrift"\n'
    client, server, at = pair(stack, folder / "keys.contract", table, "Keys", endpoint)
    opened = THttpClient(f"http://{at}/keys")
    opened.open()
    scenario(TBinaryProtocol(opened), True)
    opened.close()
    assert client.end_listed("nothing") == server.end_listed("nothing") == ""
    return f"{', '.join(ways)}, over HTTP: results, a declared exception, an unknown method, oneway, 10 MB"


@part("zeep")
def _(stack):
    import zeep

    replies = {
        "MakeGame": "<MakeGameResult>17</MakeGameResult>",
        "GetMyGames": "<GetMyGamesResult><XfccGame><id>17</id><white>ä &amp; &lt;</white><moves>1. e4 *</moves><drawOffered>false</drawOffered></XfccGame></GetMyGamesResult>",
        "MakeAMove": "<MakeAMoveResult>InvalidGameID</MakeAMoveResult>",
    }
    namespace = "http://www.bennedik.com/webservices/XfccBasic"

    class Chess(Echo):
        def do_POST(self):
            action = self.headers["SOAPAction"].strip('"').rsplit("/", 1)[-1]
            b = self.body()
            if b"<fault" in b or b"faulty" in b:
                body, status = "<s:Fault><faultcode>s:Server</faultcode><faultstring>out of order</faultstring></s:Fault>", 500
            else:
                body, status = f'<{action}Response xmlns="{namespace}">{replies[action]}</{action}Response>', 200
            out = f'<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>{body}</s:Body></s:Envelope>'.encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/xml; charset=utf-8")
            self.send_header("Content-Length", str(len(out)))
            self.end_headers()
            self.wfile.write(out)

    endpoint = f"http://127.0.0.1:{http_service(stack, Chess)}/"
    wsdl = contracts / "codecs/schemas/chess.wsdl"
    client, server, at = pair(stack, contracts / "contract/contracts/chess.contract", f'[protocols.Chess]\nkind = "soap"\nwsdl = "{wsdl}"\n', "Chess", endpoint)
    known = zeep.Client(str(wsdl))
    service = known.create_service(next(iter(known.wsdl.bindings)), f"http://{at}/")
    assert service.MakeGame("anna", "ben") == 17
    games = service.GetMyGames("anna", "geheim")
    assert games[0].white == "ä & <" and games[0].moves == "1. e4 *", games
    try:
        service.MakeGame("faulty", "ben")
        raise AssertionError("a fault is raised")
    except zeep.exceptions.Fault as fault:
        assert fault.message == "out of order"
    asked(client, 3)
    moved = service.MakeAMove("anna", "geheim", 18, False, False, 1, "e4", False, False, "")
    assert moved == "InvalidGameID"
    told = client.end()
    assert 'result != "InvalidGameID"' in told and "vouched for by client" in told and "geheim" not in told, told
    assert server.end() == ""
    return "results, a fault, one breach told and the client blamed"


@part("prometheus_client")
def _(stack):
    import urllib.request

    from prometheus_client.openmetrics.parser import text_string_to_metric_families as families

    client, _, at, _ = echo(stack)
    urllib.request.urlopen(f"http://{at}/told?a=1", timeout=20).read()
    read = {family.name: family for family in families(client.metrics())}
    samples = read["quintain_adapter_clause_verdicts"].samples
    found = {(sample.labels["clause"], sample.labels["verdict"]): sample.value for sample in samples}
    assert found["Echo.GET /told.fine", "holds"] == 1, found
    assert read["quintain_adapter_own_seconds"].unit == "seconds" and "quintain_adapter_blamed" in read
    return f"{len(read)} families of OpenMetrics"


end()
