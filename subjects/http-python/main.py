"""HTTP server: uvicorn with uvloop and httptools, a bare ASGI application, a process per CPU."""

import argparse
import os

import uvicorn

BYTES_MAX = 1 << 20  # the maximum N of /bytes/N
FILL = b"x" * BYTES_MAX


def body(path):
    if path == "/":
        return b"test"
    if path == "/plaintext":
        return b"Hello, World!"
    size = path.removeprefix("/bytes/")
    if size != path and size.isascii() and size.isdecimal() and len(size) <= 7 and int(size) <= BYTES_MAX:
        return FILL[: int(size)]
    return None


async def app(scope, receive, send):
    status, text = 200, body(scope["path"])
    if scope["method"] not in ("GET", "HEAD"):
        status, text = 405, b"method not allowed"
    elif text is None:
        status, text = 404, b"not found"
    headers = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(text))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text})  # uvicorn omits it for HEAD


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="http-python")
    parser.add_argument("-p", metavar="PORT", type=int, required=True)
    parser.add_argument("-a", metavar="ADDRESS", default="127.0.0.1")
    parser.add_argument("-t", metavar="WORKERS", type=int, default=len(os.sched_getaffinity(0)))
    arguments = parser.parse_args()
    uvicorn.run(
        "main:app",
        host=arguments.a,
        port=arguments.p,
        workers=arguments.t,
        backlog=65535,  # the kernel caps it at net.core.somaxconn
        loop="uvloop",
        http="httptools",
        lifespan="off",
        access_log=False,
        log_level="warning",
        timeout_keep_alive=75,  # the default of 5 s fails clients with a longer think time
    )
