// Ping-pong server: one io_uring per CPU, with raw system calls. The main thread accepts connections and distributes
// them round-robin through a pipe per worker. Responses and the next receive are one linked pair.
#include <arpa/inet.h>
#include <errno.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BUFFER = 8 * 1024, ENTRIES = 1024, DEALT = 64 };

struct connection {
    int fd;
    size_t filled; // bytes of an incomplete word at the front of `in`
    unsigned char in[BUFFER], out[BUFFER];
};

struct ring {
    int fd;
    unsigned *sq_head, *sq_tail, *cq_head, *cq_tail, sq_mask, cq_mask, tail, pending;
    struct io_uring_sqe *sqes;
    struct io_uring_cqe *cqes;
};

static void die(const char *what) {
    perror(what);
    exit(1);
}

static int listen_on(uint16_t port, const char *host) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = inet_addr(host)};
    socklen_t size = sizeof address;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0) die("socket");
    if (bind(fd, (struct sockaddr *)&address, size) < 0) die("bind");
    if (listen(fd, SOMAXCONN) < 0) die("listen");
    if (getsockname(fd, (struct sockaddr *)&address, &size) < 0) die("getsockname");
    printf("ready %d\n", ntohs(address.sin_port));
    fflush(stdout);
    return fd;
}

static void open_ring(struct ring *ring) {
    struct io_uring_params p = {.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN};
    if ((ring->fd = syscall(SYS_io_uring_setup, ENTRIES, &p)) < 0) die("cannot run here: io_uring of Linux 6.1 or newer");
    size_t sq_size = p.sq_off.array + p.sq_entries * sizeof(unsigned);
    size_t cq_size = p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe);
    int protection = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_POPULATE;
    char *rings = mmap(NULL, sq_size > cq_size ? sq_size : cq_size, protection, flags, ring->fd, IORING_OFF_SQ_RING);
    ring->sqes = mmap(NULL, p.sq_entries * sizeof *ring->sqes, protection, flags, ring->fd, IORING_OFF_SQES);
    if (rings == MAP_FAILED || ring->sqes == MAP_FAILED) die("mmap");
    ring->sq_head = (unsigned *)(rings + p.sq_off.head), ring->sq_tail = (unsigned *)(rings + p.sq_off.tail);
    ring->cq_head = (unsigned *)(rings + p.cq_off.head), ring->cq_tail = (unsigned *)(rings + p.cq_off.tail);
    ring->cqes = (struct io_uring_cqe *)(rings + p.cq_off.cqes);
    ring->sq_mask = p.sq_entries - 1, ring->cq_mask = p.cq_entries - 1, ring->tail = ring->pending = 0;
    for (unsigned i = 0; i < p.sq_entries; i++) ((unsigned *)(rings + p.sq_off.array))[i] = i;
}

// Submits the queued operations and waits for at least `wait` completions.
static void enter(struct ring *ring, unsigned wait) {
    __atomic_store_n(ring->sq_tail, ring->tail, __ATOMIC_RELEASE);
    int taken = syscall(SYS_io_uring_enter, ring->fd, ring->pending, wait, IORING_ENTER_GETEVENTS, NULL, 0);
    if (taken >= 0) ring->pending -= taken;
    else if (errno != EINTR && errno != EAGAIN && errno != EBUSY) die("io_uring_enter");
}

static void queue(struct ring *ring, int op, int fd, void *buffer, size_t size, int flags, int links, uint64_t tag) {
    ring->sqes[ring->tail++ & ring->sq_mask] = (struct io_uring_sqe){
        .opcode = op, .fd = fd, .addr = (uintptr_t)buffer, .len = size, .msg_flags = flags, .flags = links, .user_data = tag};
    ring->pending++;
}

static void receive(struct ring *ring, struct connection *c) {
    queue(ring, IORING_OP_RECV, c->fd, c->in + c->filled, BUFFER - c->filled, 0, 0, (uintptr_t)c);
}

// Responds to the complete words. A zero ends the process.
static void answer(struct ring *ring, struct connection *c) {
    size_t whole = c->filled & ~(size_t)3;
    for (size_t at = 0; at < whole; at += 4) {
        uint32_t word;
        memcpy(&word, c->in + at, 4);
        if (word == 0) exit(0);
        word = htonl(ntohl(word) + 1);
        memcpy(c->out + at, &word, 4);
    }
    memmove(c->in, c->in + whole, c->filled -= whole);
    // With MSG_WAITALL, the linked receive starts once all is sent, so a peer that does not read cannot send more. A
    // send that fails completes with tag 0 and cancels the receive, which then closes the connection.
    if (whole > 0)
        queue(ring, IORING_OP_SEND, c->fd, c->out, whole, MSG_NOSIGNAL | MSG_WAITALL, IOSQE_IO_LINK | IOSQE_CQE_SKIP_SUCCESS, 0);
    receive(ring, c);
}

static pthread_barrier_t rings_open;

static void *work(void *argument) {
    int dealt[DEALT], pipe = (int)(intptr_t)argument;
    struct ring ring;
    open_ring(&ring); // in the thread that uses it, as IORING_SETUP_SINGLE_ISSUER requires
    pthread_barrier_wait(&rings_open);
    queue(&ring, IORING_OP_READ, pipe, dealt, sizeof dealt, 0, 0, (uintptr_t)dealt);
    for (;;) {
        enter(&ring, 1);
        unsigned head = *ring.cq_head, end = __atomic_load_n(ring.cq_tail, __ATOMIC_ACQUIRE);
        for (; head != end; head++) {
            struct io_uring_cqe done = ring.cqes[head & ring.cq_mask];
            __atomic_store_n(ring.cq_head, head + 1, __ATOMIC_RELEASE);
            while (ring.pending > ENTRIES - DEALT - 1) enter(&ring, 0);
            if (done.user_data == (uintptr_t)dealt) {
                for (int i = 0; i < done.res / (int)sizeof(int); i++) {
                    struct connection *c = malloc(sizeof *c);
                    if (!c) die("malloc");
                    c->fd = dealt[i], c->filled = 0;
                    receive(&ring, c);
                }
                queue(&ring, IORING_OP_READ, pipe, dealt, sizeof dealt, 0, 0, (uintptr_t)dealt);
            } else if (done.user_data != 0) {
                struct connection *c = (struct connection *)(uintptr_t)done.user_data;
                if (done.res > 0) {
                    c->filled += done.res;
                    answer(&ring, c);
                } else if (done.res == -EINTR || done.res == -EAGAIN) {
                    receive(&ring, c);
                } else {
                    close(c->fd);
                    free(c);
                }
            }
        }
    }
    return NULL;
}

int main(int argc, char **argv) {
    if ((argc != 3 && (argc != 5 || strcmp(argv[3], "-a") != 0)) || strcmp(argv[1], "-p") != 0) {
        fprintf(stderr, "usage: %s -p PORT [-a ADDRESS]\n", argv[0]);
        return 2;
    }
    cpu_set_t cpus;
    if (sched_getaffinity(0, sizeof cpus, &cpus) < 0) die("sched_getaffinity");
    int workers = CPU_COUNT(&cpus), pipes[CPU_SETSIZE][2], on = 1;
    pthread_barrier_init(&rings_open, NULL, workers + 1);
    for (int i = 0; i < workers; i++) {
        pthread_t thread;
        if (pipe(pipes[i]) < 0) die("pipe");
        if (pthread_create(&thread, NULL, work, (void *)(intptr_t)pipes[i][0]) != 0) die("pthread_create");
    }
    pthread_barrier_wait(&rings_open);
    int listener = listen_on(atoi(argv[2]), argc == 5 ? argv[4] : "127.0.0.1");
    for (unsigned next = 0;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE) usleep(1000); // wait for connections to close
            continue;
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (write(pipes[next++ % workers][1], &fd, sizeof fd) != sizeof fd) die("pipe");
    }
}
