"""Knocks at the port of a lab as those do who know nothing: `strangers.py HOST PORT`."""
import socket, ssl, sys, time

where = sys.argv[1], int(sys.argv[2])


def connect():
    return socket.create_connection(where, timeout=10)


def ended(stream):
    """How long until the lab ended it, s."""
    since = time.monotonic()
    try:
        while stream.recv(4096):
            pass
    except OSError:
        pass
    return time.monotonic() - since


def tls(version, line=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version = context.maximum_version = version
    try:
        stream = context.wrap_socket(connect())
        if line is None:
            return "let in"
        stream.sendall(line)
        return stream.recv(1024).decode().strip() or "ended"
    except OSError as error:
        return getattr(error, "reason", None) or type(error).__name__


def garbage(bytes):
    with connect() as stream:
        stream.sendall(bytes)
        return f"{ended(stream):.2f} s"


told = [
    f"TLS 1.2: {tls(ssl.TLSVersion.TLSv1_2)}",
    "the ticket of another run: " + tls(ssl.TLSVersion.TLSv1_3, b'{"join":{"rank":1,"ticket":"' + b"0" * 64 + b'"}}\n'),
    f"garbage ended after {garbage(bytes(range(256)) * 40)}",
    f"half a handshake ended after {garbage(bytes([22, 3, 1, 2, 0, 1]))}",
]
since = time.monotonic()
flood = []
for _ in range(1000):
    try:
        flood.append(connect())
    except OSError:
        pass
told.append(f"a flood of {len(flood)} connections, all ended {max(map(ended, flood)) and time.monotonic() - since:.1f} s after it began")
print(", ".join(told))
