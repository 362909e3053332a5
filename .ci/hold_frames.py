"""A link that takes longer, where the kernel has no netem: holds the frames between a tap here and one in a namespace.
`hold_frames.py NAMESPACE TAP MS`; the tap there is eth0. Says `ready`."""
import collections, ctypes, fcntl, os, select, struct, sys, time

TUNSETIFF, IFF_TAP, IFF_NO_PI, CLONE_NEWNET = 0x400454CA, 2, 0x1000, 0x40000000


def tap(name):
    file = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(file, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
    return file


namespace, name, ms = sys.argv[1:]
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(29, 1, 0, 0, 0)  # PR_SET_TIMERSLACK
try:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))  # Else a busy machine is a longer link.
except PermissionError:
    pass
here = tap(name)
assert libc.setns(os.open(f"/run/netns/{namespace}", os.O_RDONLY), CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
there = tap("eth0")
print("ready", flush=True)
held = collections.deque()
other = {here: there, there: here}
while True:
    wait = max(held[0][0] - time.monotonic(), 0) if held else None
    for file in select.select([here, there], [], [], wait)[0]:
        held.append((time.monotonic() + float(ms) / 1e3, other[file], os.read(file, 1 << 17)))
    while held and held[0][0] <= time.monotonic():
        _, to, frame = held.popleft()
        try:
            os.write(to, frame)
        except OSError:
            pass  # An interface that is down, or full.
