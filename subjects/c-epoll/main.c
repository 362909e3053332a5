// Ping-pong server: one worker with its own epoll per CPU. The main thread distributes connections round-robin.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BUFFER = 16 * 1024, EVENTS = 256 };

// Responses replace words. `sent <= whole <= filled` split the buffer: sent responses, unsent responses, partial word.
struct connection {
    int fd, epoll;
    uint32_t watched; // EPOLLIN, or only EPOLLOUT while the peer does not read
    size_t sent, whole, filled;
    unsigned char buffer[BUFFER];
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

// Replaces each word with its response. A zero ends the process.
static void answer(unsigned char *bytes, size_t size) {
    for (size_t at = 0; at < size; at += 4) {
        uint32_t word;
        memcpy(&word, bytes + at, 4);
        if (word == 0) exit(0);
        word = htonl(ntohl(word) + 1);
        memcpy(bytes + at, &word, 4);
    }
}

// Receives, unless responses are unsent, then sends. Returns false at the end of the connection.
static int turn(struct connection *c) {
    if (c->sent == c->whole) {
        ssize_t got = recv(c->fd, c->buffer + c->filled, BUFFER - c->filled, 0);
        if (got < 0) return errno == EAGAIN || errno == EINTR;
        if (got == 0) return 0;
        c->filled += got;
        c->whole = c->filled & ~(size_t)3;
        answer(c->buffer, c->whole);
    }
    if (c->sent < c->whole) {
        ssize_t put = send(c->fd, c->buffer + c->sent, c->whole - c->sent, MSG_NOSIGNAL);
        if (put < 0 && errno != EAGAIN && errno != EINTR) return 0;
        if (put > 0) c->sent += put;
    }
    if (c->sent == c->whole) {
        memmove(c->buffer, c->buffer + c->whole, c->filled - c->whole);
        c->filled -= c->whole;
        c->sent = c->whole = 0;
    }
    uint32_t wanted = c->sent < c->whole ? EPOLLOUT : EPOLLIN;
    if (wanted == c->watched) return 1;
    c->watched = wanted;
    return epoll_ctl(c->epoll, EPOLL_CTL_MOD, c->fd, &(struct epoll_event){wanted, {.ptr = c}}) == 0;
}

static void *work(void *argument) {
    int epoll = (int)(intptr_t)argument;
    struct epoll_event events[EVENTS];
    for (;;) {
        int count = epoll_wait(epoll, events, EVENTS, -1);
        for (int i = 0; i < count; i++) {
            struct connection *c = events[i].data.ptr;
            if (turn(c)) continue;
            close(c->fd);
            free(c);
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
    int workers = CPU_COUNT(&cpus), epolls[CPU_SETSIZE], on = 1;
    for (int i = 0; i < workers; i++) {
        pthread_t thread;
        if ((epolls[i] = epoll_create1(EPOLL_CLOEXEC)) < 0) die("epoll_create1");
        if (pthread_create(&thread, NULL, work, (void *)(intptr_t)epolls[i]) != 0) die("pthread_create");
    }
    int listener = listen_on(atoi(argv[2]), argc == 5 ? argv[4] : "127.0.0.1");
    for (unsigned next = 0;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE) usleep(1000); // wait for connections to close
            continue;
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        struct connection *c = malloc(sizeof *c);
        if (!c) die("malloc");
        c->fd = fd, c->epoll = epolls[next++ % workers], c->watched = EPOLLIN;
        c->sent = c->whole = c->filled = 0;
        if (epoll_ctl(c->epoll, EPOLL_CTL_ADD, fd, &(struct epoll_event){EPOLLIN, {.ptr = c}}) < 0) die("epoll_ctl");
    }
}
