"""Real clients against a cache server: pymemcache, redis-py, curl, redis-benchmark, memcslap, memccapable.

    python3 .ci/cache_clients.py PORT

Prints a line for each client. Exits with 1 if one failed. Skips clients that are not installed.
"""

import shutil
import subprocess
import sys
import urllib.error
import urllib.request

from parts import end, part

port = int(sys.argv[1])


def program(name):
    if shutil.which(name) is None:
        raise ImportError(f"{name} is not installed")
    return name


def output(*command, timeout=120):
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@part("pymemcache")
def _():
    from pymemcache.client.base import Client

    client = Client(("127.0.0.1", port), default_noreply=False)
    client.flush_all()
    assert client.set("a", b"1" * 1000) and client.get("a") == b"1" * 1000
    assert client.add("a", b"2") is False and client.add("b", b"2")
    assert client.replace("c", b"3") is False and client.replace("b", b"3")
    assert client.append("b", b"4") and client.prepend("b", b"2") and client.get("b") == b"234"
    value, cas = client.gets("b")
    assert client.cas("b", b"x", cas) is True and client.cas("b", b"y", cas) is False and client.cas("no", b"", b"1") is None
    assert client.set("n", b"10") and client.incr("n", 5) == 15 and client.decr("n", 20) == 0
    assert client.touch("n", 100) and not client.touch("no", 100)
    assert client.set_many({f"k{i}": str(i) for i in range(500)}) == []
    assert client.get_many([f"k{i}" for i in range(600)]) == {f"k{i}": str(i).encode() for i in range(500)}
    assert client.delete("n") and not client.delete("n")
    assert client.set("big", b"v" * (1 << 18)) and len(client.get("big")) == 1 << 18
    assert client.set("empty", b"") and client.get("empty") == b""
    assert client.stats()[b"get_hits"] > 0 and client.version()
    client.set("quiet", b"1", noreply=True)
    assert client.get("quiet") == b"1"
    client.quit()
    return "18 commands"


for version in (2, 3):

    @part(f"redis-py, RESP{version}")
    def _():
        import redis

        client = redis.Redis(port=port, protocol=version)
        client.flushall()
        assert client.ping() and client.set("a", b"1" * 1000) and client.get("a") == b"1" * 1000
        assert client.get("no") is None and client.set("a", "2", nx=True) is None and client.set("z", "2", xx=True) is None
        assert client.set("a", "3", get=True) == b"1" * 1000
        assert client.setex("t", 10, "v") and 0 < client.ttl("t") <= 10 and 0 < client.pttl("t") <= 11000
        assert client.expire("a", 100) and client.ttl("a") > 90 and client.set("a", "4", keepttl=True) and client.ttl("a") > 90
        assert client.mset({f"k{i}": i for i in range(500)})
        assert client.mget([f"k{i}" for i in range(501)]) == [str(i).encode() for i in range(500)] + [None]
        assert client.exists("a", "k1", "no") == 2 and client.delete("k1", "no") == 1 and client.unlink("k2") == 1
        assert client.dbsize() == 500 and client.info()["keyspace_hits"] > 0 and client.info("memory")["maxmemory"] > 0
        assert "maxmemory" in client.config_get("maxmemory") and client.echo("hi") == b"hi"
        with client.pipeline(transaction=False) as pipe:
            for i in range(1000):
                pipe.set(f"p{i}", i).get(f"p{i}")
            said = pipe.execute()
        assert said[1::2] == [str(i).encode() for i in range(1000)]
        assert client.set("big", b"v" * (1 << 18)) and len(client.get("big")) == 1 << 18
        try:
            client.execute_command("LPUSH", "l", "1")
            raise AssertionError("LPUSH is not there")
        except redis.ResponseError:
            pass
        client.close()
        return "23 commands, a pipeline of 2000"


@part("curl")
def _():
    program("curl")
    base = f"http://127.0.0.1:{port}"
    status = lambda method, path: output("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-X", method, base + path)
    assert output("curl", "-s", "-X", "POST", base + "/reset") == ""
    assert status("PUT", "/k/some%20value") == "201" and status("PUT", "/k/other") == "204"
    assert output("curl", "-s", base + "/k") == "other" and status("GET", "/no") == "404"
    assert "Items: 1" in output("curl", "-s", "-I", base + "/") and "Content-Length: 5" in output("curl", "-s", "-I", base + "/k")
    assert status("DELETE", "/k") == "204" and status("DELETE", "/k") == "404" and status("PUT", "/k") == "400"
    assert output("curl", "-s", "--http1.1", "-d", "body", "-o", "/dev/null", "-w", "%{http_code}", "-X", "PUT", base + "/k/v") == "400"
    return "GET PUT DELETE HEAD POST"


@part("urllib")
def _():
    base = f"http://127.0.0.1:{port}"
    urllib.request.urlopen(urllib.request.Request(base + "/u/1", method="PUT"), timeout=10).read()
    assert urllib.request.urlopen(base + "/u", timeout=10).read() == b"1"
    try:
        urllib.request.urlopen(base + "/none", timeout=10)
        raise AssertionError("it is not there")
    except urllib.error.HTTPError as error:
        assert error.code == 404
    return "GET PUT"


@part("redis-benchmark")
def _():
    said = output(program("redis-benchmark"), "-p", str(port), "-t", "ping,set,get,mset", "-n", "20000", "-r", "1000", "-P", "8", "-q")
    assert "rror" not in said, said
    said += output("redis-benchmark", "-p", str(port), "-t", "set,get", "-n", "20000", "-r", "1000", "-3", "-q")
    assert "rror" not in said, said
    return "ping set get mset, depth 8; set get, RESP3"


@part("memcslap")
def _():
    for test in ("set", "get", "mget"):
        said = output(program("memcslap"), f"--servers=127.0.0.1:{port}", f"--test={test}", "--concurrency=4", "--execute-number=2000")
        assert "rror" not in said and "ail" not in said, said
    return "set get mget"


@part("memccapable")
def _():
    said = output(program("memccapable"), "-h", "127.0.0.1", "-p", str(port), "-a")
    assert "All tests passed" in said, said
    return "all of its tests of the text protocol"


end()
