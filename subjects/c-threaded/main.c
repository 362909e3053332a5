// Ping-pong server: a blocking thread per connection; the scheduler distributes them over the CPUs.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BUFFER = 16 * 1024, STACK = 128 * 1024 };

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

static void *serve(void *argument) {
    int fd = (int)(intptr_t)argument;
    unsigned char buffer[BUFFER];
    size_t filled = 0;
    for (;;) {
        ssize_t got = recv(fd, buffer + filled, BUFFER - filled, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        filled += got;
        size_t whole = filled & ~(size_t)3, sent = 0;
        answer(buffer, whole);
        while (sent < whole) {
            ssize_t put = send(fd, buffer + sent, whole - sent, MSG_NOSIGNAL);
            if (put < 0 && errno == EINTR) continue;
            if (put < 0) goto closed;
            sent += put;
        }
        memmove(buffer, buffer + whole, filled - whole); // the incomplete word, at most three bytes
        filled -= whole;
    }
closed:
    close(fd);
    return NULL;
}

int main(int argc, char **argv) {
    if ((argc != 3 && (argc != 5 || strcmp(argv[3], "-a") != 0)) || strcmp(argv[1], "-p") != 0) {
        fprintf(stderr, "usage: %s -p PORT [-a ADDRESS]\n", argv[0]);
        return 2;
    }
    int listener = listen_on(atoi(argv[2]), argc == 5 ? argv[4] : "127.0.0.1"), on = 1;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK);
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE) usleep(1000); // wait for connections to close
            continue;
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        pthread_t thread;
        if (pthread_create(&thread, &attributes, serve, (void *)(intptr_t)fd) != 0) close(fd);
    }
}
