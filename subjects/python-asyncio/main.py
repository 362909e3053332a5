#!/usr/bin/env python3
"""Ping-pong server: an asyncio event loop in a process per CPU.

The parent accepts and distributes connections round-robin. SO_REUSEPORT distributes by a hash of the client's address,
which often puts few connections into one process and makes the server look slower than it is.
"""

import asyncio
import os
import signal
import socket
import struct
import sys
import time

WORD = struct.Struct("!I")


def answer(words):
    """The responses to complete words. A zero ends the process, and with it the parent and the other workers."""
    size = len(words) // 4
    values = struct.unpack(f"!{size}I", words)
    if 0 in values:
        os._exit(0)
    if size == 1:
        return WORD.pack((values[0] + 1) & 0xFFFFFFFF)
    return struct.pack(f"!{size}I", *[(value + 1) & 0xFFFFFFFF for value in values])


class Connection(asyncio.Protocol):
    def connection_made(self, transport):  # asyncio has set TCP_NODELAY
        self.transport = transport
        self.begun = b""  # the incomplete word, at most three bytes

    def data_received(self, data):
        if self.begun:
            data = self.begun + data
        whole = len(data) & ~3
        self.begun = data[whole:]
        if whole:
            self.transport.write(answer(data[:whole]))

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
    if len(sys.argv) not in (3, 5) or sys.argv[1] != "-p" or sys.argv[3:4] not in ([], ["-a"]):
        sys.exit(f"usage: {sys.argv[0]} -p PORT [-a ADDRESS]")
    address = sys.argv[4] if len(sys.argv) == 5 else "127.0.0.1"
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, int(sys.argv[2])))

    # A worker ends at a zero, or when its channel closes with the parent. The parent ends when any worker ends.
    channels = []
    for _ in os.sched_getaffinity(0):
        ours, theirs = socket.socketpair()
        if os.fork() == 0:
            for other in [listener, ours, *channels]:
                other.close()
            asyncio.run(work(theirs))
            os._exit(0)
        theirs.close()
        channels.append(ours)
    signal.signal(signal.SIGCHLD, lambda *_: os._exit(0))

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
