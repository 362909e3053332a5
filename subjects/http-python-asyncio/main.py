#!/usr/bin/env python3
"""HTTP server: asyncio without other libraries, an event loop in a process per CPU.

The parent accepts and distributes connections round-robin. SO_REUSEPORT distributes by a hash of the client's address,
which often puts few connections into one process and makes the server look slower than it is.
"""

import argparse
import asyncio
import email.utils
import os
import re
import signal
import socket
import time

HEAD_MAX = 64 * 1024
BODY_MAX = 1 << 20
FILL = b"x" * (1 << 20)  # the maximum N of /bytes/N
REQUEST_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([!-~]+) HTTP/1\.([01])")
FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\0\r\n]*?)[ \t]*")
REASONS = {200: b"OK", 400: b"Bad Request", 404: b"Not Found", 405: b"Method Not Allowed", 413: b"Content Too Large",
           431: b"Request Header Fields Too Large", 501: b"Not Implemented"}  # fmt: skip


class Refused(Exception):
    """An invalid request: it gets a response, then the connection is closed."""


def parse(head):
    """Returns method, path, length of the body, and whether to keep the connection open."""
    line, *fields = head.split(b"\r\n")
    request = REQUEST_LINE.fullmatch(line)
    if not request:
        raise Refused(400)
    method, target, minor = request.groups()
    length, hosts, keep = 0, 0, minor == b"1"
    for field in fields:
        match = FIELD.fullmatch(field)
        if not match:
            raise Refused(400)
        name, value = match[1].lower(), match[2]
        if name == b"host":
            hosts += 1
        elif name == b"connection":
            options = [option.strip() for option in value.lower().split(b",")]
            keep = b"close" not in options and (keep or b"keep-alive" in options)
        elif name == b"transfer-encoding":
            raise Refused(501)
        elif name == b"content-length":
            if length or not value.isdigit() or len(value) > 18:
                raise Refused(400)
            length = int(value)
    if minor == b"1" and hosts != 1:
        raise Refused(400)
    return method, target.partition(b"?")[0], length, keep


def answer(method, path):
    if method not in (b"GET", b"HEAD"):
        return 405, b"method not allowed"
    if path == b"/":
        return 200, b"test"
    if path == b"/plaintext":
        return 200, b"Hello, World!"
    size = path.removeprefix(b"/bytes/")
    if size != path and size.isdigit() and len(size) <= 7 and int(size) <= len(FILL):
        return 200, FILL[: int(size)]
    return 404, b"not found"


date = (0, b"")  # the current second and its Date header


def compose(status, body, keep, with_body):
    global date
    now = int(time.time())
    if date[0] != now:
        date = (now, email.utils.formatdate(now, usegmt=True).encode())
    head = b"HTTP/1.1 %d %s\r\nDate: %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: %s\r\n\r\n" % (
        status, REASONS[status], date[1], len(body), b"keep-alive" if keep else b"close")  # fmt: skip
    return head + body if with_body else head


class Connection(asyncio.Protocol):
    def connection_made(self, transport):  # asyncio has set TCP_NODELAY
        self.transport = transport
        self.begun = bytearray()  # the incomplete request
        self.skip = 0  # bytes of a request body still to ignore

    def data_received(self, data):
        self.begun += data
        answers = []
        try:
            while self.begun and not self.transport.is_closing():
                if self.skip:
                    taken = min(self.skip, len(self.begun))
                    del self.begun[:taken]
                    self.skip -= taken
                    continue
                end = self.begun.find(b"\r\n\r\n")
                if end > HEAD_MAX or (end < 0 and len(self.begun) > HEAD_MAX):
                    raise Refused(431)
                if end < 0:
                    if b"\n" in self.begun and not REQUEST_LINE.fullmatch(self.begun.split(b"\r\n", 1)[0]):
                        raise Refused(400)
                    break
                method, path, self.skip, keep = parse(bytes(self.begun[:end]))
                if self.skip > BODY_MAX:
                    raise Refused(413)
                del self.begun[: end + 4]
                status, body = answer(method, path)
                answers.append(compose(status, body, keep, method != b"HEAD"))
                if not keep:
                    self.finish(answers)
                    return
        except Refused as refused:
            status = refused.args[0]
            answers.append(compose(status, REASONS[status].lower(), False, True))
            self.finish(answers)
            return
        if answers:
            self.transport.write(b"".join(answers))

    def finish(self, answers):
        self.transport.write(b"".join(answers))
        self.transport.close()  # after sending everything

    def pause_writing(self):  # stop reading while the peer does not read
        self.transport.pause_reading()

    def resume_writing(self):
        self.transport.resume_reading()


async def work(channel):
    loop = asyncio.get_running_loop()
    ended = loop.create_future()
    starting = set()  # the event loop only has weak references to tasks

    def receive():
        message, descriptors, _, _ = socket.recv_fds(channel, 1, 1)
        if not message and not ended.done():  # the parent is gone
            ended.set_result(None)
        for descriptor in descriptors:
            connected = socket.socket(fileno=descriptor)
            connected.setblocking(False)
            task = loop.create_task(loop.connect_accepted_socket(Connection, connected))
            starting.add(task)
            task.add_done_callback(starting.discard)

    loop.add_reader(channel, receive)
    await ended


def main():
    parser = argparse.ArgumentParser(prog="http-python-asyncio")
    parser.add_argument("-p", metavar="PORT", type=int, required=True)
    parser.add_argument("-a", metavar="ADDRESS", default="127.0.0.1")
    parser.add_argument("-t", metavar="WORKERS", type=int, default=len(os.sched_getaffinity(0)))
    arguments = parser.parse_args()
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((arguments.a, arguments.p))

    # A worker ends when its channel closes with the parent. The parent ends when any worker ends.
    channels = []
    for _ in range(arguments.t):
        ours, theirs = socket.socketpair()
        if os.fork() == 0:
            for other in [listener, ours, *channels]:
                other.close()
            asyncio.run(work(theirs))
            os._exit(0)
        theirs.close()
        channels.append(ours)
    signal.signal(signal.SIGCHLD, lambda *_: os._exit(1))

    listener.listen(socket.SOMAXCONN)
    print("ready", listener.getsockname()[1], flush=True)
    turn = 0
    while True:
        try:
            connected, _ = listener.accept()
        except OSError:  # too many files: wait for connections to close
            time.sleep(0.001)
            continue
        with connected:
            socket.send_fds(channels[turn % len(channels)], [b"c"], [connected.fileno()])
        turn += 1


main()
