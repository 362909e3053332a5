// HTTP server that does WORK steps of arithmetic per request, so that two builds differ by a known share. It has one
// thread and supports keep-alive and GET without bodies.
#define _GNU_SOURCE // accept4
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef WORK
#define WORK 4000
#endif
// Every FAIL-th request gets 503 without work; 0 for none.
#ifndef FAIL
#define FAIL 0
#endif

enum { BUFFER = 4096, EVENTS = 256 };
static const char ANSWER[] = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\npong";

static const char FAILURE[] = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";

struct connection {
    int fd;
    size_t filled;
    char buffer[BUFFER + 1];
};

static void die(const char *what) {
    perror(what);
    exit(1);
}

static uint32_t work(uint32_t x) {
    for (uint32_t i = 0; i < WORK; i++) x = x * 1664525u + 1013904223u;
    return x;
}

// Answers every whole request in the buffer. Returns false at the end of the connection.
static int turn(struct connection *c) {
    static volatile uint32_t sink;
    static uint32_t requests;
    ssize_t got = recv(c->fd, c->buffer + c->filled, BUFFER - c->filled, 0);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0) return 0;
    c->filled += got;
    c->buffer[c->filled] = 0;
    char *end, *from = c->buffer;
    while ((end = strstr(from, "\r\n\r\n"))) {
        int fails = FAIL > 0 && ++requests % (FAIL > 0 ? FAIL : 1) == 0;
        if (!fails) sink = work(sink);
        ssize_t size = fails ? sizeof FAILURE - 1 : sizeof ANSWER - 1;
        if (send(c->fd, fails ? FAILURE : ANSWER, size, MSG_NOSIGNAL) != size) return 0;
        from = end + 4;
    }
    c->filled -= from - c->buffer;
    memmove(c->buffer, from, c->filled);
    return c->filled < BUFFER;
}

int main(int argc, char **argv) {
    if (argc != 3 || strcmp(argv[1], "-p") != 0) {
        fprintf(stderr, "usage: %s -p PORT\n", argv[0]);
        return 2;
    }
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1, epoll = epoll_create1(EPOLL_CLOEXEC);
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(atoi(argv[2])), .sin_addr.s_addr = inet_addr("127.0.0.1")};
    if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0) die("socket");
    if (bind(listener, (struct sockaddr *)&address, sizeof address) < 0) die("bind");
    if (listen(listener, SOMAXCONN) < 0) die("listen");
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &(struct epoll_event){EPOLLIN, {.ptr = NULL}}) < 0) die("epoll_ctl");
    struct epoll_event events[EVENTS];
    for (;;) {
        int count = epoll_wait(epoll, events, EVENTS, -1);
        for (int i = 0; i < count; i++) {
            struct connection *c = events[i].data.ptr;
            if (c) {
                if (turn(c)) continue;
                close(c->fd);
                free(c);
                continue;
            }
            int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
            if (fd < 0) continue;
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            if (!(c = malloc(sizeof *c))) die("malloc");
            c->fd = fd, c->filled = 0;
            if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &(struct epoll_event){EPOLLIN, {.ptr = c}}) < 0) die("epoll_ctl");
        }
    }
}
