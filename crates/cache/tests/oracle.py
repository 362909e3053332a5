# Counts misses of published policies with libcachesim 0.3.5 (PyPI), for oracle.rs.
import libcachesim as l
M, state = (1 << 64) - 1, 7
def mix():
    global state
    state = z = (state + 0x9e3779b97f4a7c15) & M
    z = ((z ^ (z >> 30)) * 0xbf58476d1ce4e5b9) & M
    z = ((z ^ (z >> 27)) * 0x94d049bb133111eb) & M
    return z ^ (z >> 31)
def key(number):
    draw = mix()
    octave = (draw >> 60) % 12
    within = (draw & 0xffffffff) >> (32 - octave)
    return 10_000_000 + number if (draw >> 32) % 8 == 0 else (1 << octave) + within
keys = [key(number) for number in range(60_000)]
never, following, last = (1 << 63) - 1, [], {}
for number in reversed(range(len(keys))):
    following.append(last.get(keys[number], never))
    last[keys[number]] = number
following.reverse()
for items in (100, 300, 1000):
    for policy in (l.FIFO, l.LRU, l.Clock, l.Sieve, l.S3FIFO, l.Belady):
        cache, misses = policy(items, hashpower=16), 0
        for number, key in enumerate(keys):
            request = l.Request()
            request.obj_id, request.obj_size, request.clock_time = key, 1, number
            request.next_access_vtime = following[number]
            misses += not cache.get(request)
        print(items, policy.__name__, misses)
