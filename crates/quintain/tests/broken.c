// A ping-pong server with the one defect that its first argument names, or without defects (`none`).
// The requirements are in subjects/REQUIREMENTS.md. It uses a blocking thread per connection and
// small reads, so that each defect takes one line.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char *defect;

static int is(const char *name) { return strcmp(defect, name) == 0; }

static void end(void) {
    if (!is("ignores-zero")) exit(0);
}

static uint32_t answer(uint32_t word) {
    if (is("adds-two")) return word + 2;
    if (is("does-not-wrap") && word == UINT32_MAX) return word;
    if (is("ends-at-a-wrapped-answer") && word == UINT32_MAX) exit(0);
    return word + 1;
}

static pthread_mutex_t one_lock = PTHREAD_MUTEX_INITIALIZER;

static int send_all(int fd, const unsigned char *bytes, size_t size) {
    while (size > 0) {
        ssize_t put = send(fd, bytes, size, MSG_NOSIGNAL);
        if (put <= 0) return 0;
        bytes += put, size -= put;
    }
    return 1;
}

static void *serve(void *argument) {
    int fd = (int)(intptr_t)argument;
    unsigned char buffer[8192];
    size_t filled = 0;
    for (;;) {
        ssize_t got = recv(fd, buffer + filled, sizeof buffer - filled, 0);
        if (got < 0 && is("dies-at-a-reset")) exit(1);
        if (got <= 0) break;
        filled += got;
        size_t whole = filled & ~(size_t)3, keep = filled - whole;
        if (is("ends-with-the-client")) { // treats a half-close as a close
            usleep(20000);
            struct pollfd state = {.fd = fd, .events = POLLRDHUP};
            if (poll(&state, 1, 0) > 0 && state.revents & POLLRDHUP) break;
        }
        for (size_t at = 0; at < whole; at += 4) {
            uint32_t word;
            memcpy(&word, buffer + at, 4);
            if (word == 0) end();
            word = is("host-byte-order") ? word + 1 : htonl(answer(ntohl(word)));
            memcpy(buffer + at, &word, 4);
        }
        size_t answered = is("drops-pipelined-words") && whole > 4 ? 4 : whole;
        if (is("sends-under-one-lock")) pthread_mutex_lock(&one_lock);
        int sent = send_all(fd, buffer, answered);
        if (is("sends-under-one-lock")) pthread_mutex_unlock(&one_lock);
        if (!sent) break;
        memmove(buffer, buffer + whole, keep);
        filled = is("drops-partial-words") ? 0 : keep;
    }
    if (!is("leaks-connections")) close(fd);
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 4 || strcmp(argv[2], "-p") != 0) return 2;
    defect = argv[1];
    if (is("does-not-start")) {
        fprintf(stderr, "no such thing\n");
        return 1;
    }
    if (is("says-it-cannot")) {
        fprintf(stderr, "cannot run here: no such thing\n");
        return 1;
    }
    if (is("ignores-sigterm")) signal(SIGTERM, SIG_IGN);
    if (is("leaves-a-child") && fork() == 0)
        for (;;) pause();
    if (is("leaves-a-session") && fork() == 0) { // like a daemon
        setsid();
        for (;;) pause();
    }
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(atoi(argv[3])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    if (!is("no-reuseaddr")) setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) < 0 || listen(listener, SOMAXCONN) < 0) {
        perror("listen");
        return 1;
    }
    if (is("waits-for-a-client")) signal(SIGTERM, SIG_IGN); // until a client has sent data
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        if (fd < 0) continue;
        if (is("waits-for-a-client") && recv(fd, &on, 1, MSG_PEEK) > 0) signal(SIGTERM, SIG_DFL);
        if (!is("nagle")) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
        if (is("one-client-at-a-time")) {
            serve((void *)(intptr_t)fd);
            continue;
        }
        pthread_t thread;
        if (pthread_create(&thread, NULL, serve, (void *)(intptr_t)fd) == 0) pthread_detach(thread);
        else close(fd);
    }
}
