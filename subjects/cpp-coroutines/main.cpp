// Ping-pong server: C++20 coroutines and one epoll per CPU. A connection is a coroutine that reads like blocking code.
// The main thread accepts and distributes connections round-robin.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <coroutine>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

[[noreturn]] static void die(const char *what) {
    std::perror(what);
    std::exit(1);
}

// A coroutine without a caller that waits. It starts at once and frees its frame at its end.
struct Detached {
    struct promise_type {
        Detached get_return_object() { return {}; }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_never final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() { std::terminate(); }
    };
};

class Socket {
  public:
    Socket(int epoll, int fd) : epoll(epoll), fd(fd) {}
    Socket(const Socket &) = delete;
    ~Socket() { close(fd); }

    // An awaitable that resumes in the thread of the socket's epoll when the socket is ready for `events`.
    auto ready(uint32_t events) {
        struct Ready {
            Socket &socket;
            uint32_t events;
            bool await_ready() { return false; }
            void await_suspend(std::coroutine_handle<> waiting) {
                socket.waiting = waiting;
                if (socket.watched == events) return;
                int op = socket.watched == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
                socket.watched = events;
                epoll_event event{events, {.ptr = &socket}};
                // The coroutine must not be accessed after this: another thread may already have resumed it.
                if (epoll_ctl(socket.epoll, op, socket.fd, &event) < 0) die("epoll_ctl");
            }
            void await_resume() {}
        };
        return Ready{*this, events};
    }

    const int epoll, fd;
    std::coroutine_handle<> waiting;

  private:
    uint32_t watched = 0;
};

// Replaces each word by its response. A zero ends the process.
static void answer(std::span<unsigned char> bytes) {
    for (size_t at = 0; at < bytes.size(); at += 4) {
        uint32_t word;
        std::memcpy(&word, &bytes[at], 4);
        if (word == 0) _exit(0);
        word = htonl(ntohl(word) + 1);
        std::memcpy(&bytes[at], &word, 4);
    }
}

static Detached serve(int epoll, int fd) {
    Socket socket(epoll, fd);
    unsigned char buffer[16 * 1024];
    size_t filled = 0;
    for (;;) {
        co_await socket.ready(EPOLLIN);
        ssize_t got = recv(fd, buffer + filled, sizeof buffer - filled, 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        if (got <= 0) co_return;
        filled += got;
        size_t whole = filled & ~size_t{3}, sent = 0;
        answer({buffer, whole});
        while (sent < whole) {
            ssize_t put = send(fd, buffer + sent, whole - sent, MSG_NOSIGNAL);
            if (put >= 0) sent += put;
            else if (errno == EAGAIN) co_await socket.ready(EPOLLOUT);
            else if (errno != EINTR) co_return;
        }
        std::memmove(buffer, buffer + whole, filled - whole); // the incomplete word, at most three bytes
        filled -= whole;
    }
}

static void work(int epoll) {
    epoll_event events[256];
    for (;;) {
        int count = epoll_wait(epoll, events, std::size(events), -1);
        for (int i = 0; i < count; i++) static_cast<Socket *>(events[i].data.ptr)->waiting.resume();
    }
}

static int listen_on(uint16_t port, const char *host) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    sockaddr_in address{};
    address.sin_family = AF_INET, address.sin_port = htons(port), address.sin_addr.s_addr = inet_addr(host);
    socklen_t size = sizeof address;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0) die("socket");
    if (bind(fd, reinterpret_cast<sockaddr *>(&address), size) < 0) die("bind");
    if (listen(fd, SOMAXCONN) < 0) die("listen");
    if (getsockname(fd, reinterpret_cast<sockaddr *>(&address), &size) < 0) die("getsockname");
    std::printf("ready %d\n", ntohs(address.sin_port));
    std::fflush(stdout);
    return fd;
}

int main(int argc, char **argv) {
    if ((argc != 3 && (argc != 5 || std::string_view(argv[3]) != "-a")) || std::string_view(argv[1]) != "-p") {
        std::fprintf(stderr, "usage: %s -p PORT [-a ADDRESS]\n", argv[0]);
        return 2;
    }
    cpu_set_t cpus;
    if (sched_getaffinity(0, sizeof cpus, &cpus) < 0) die("sched_getaffinity");
    std::vector<int> epolls(CPU_COUNT(&cpus));
    for (int &epoll : epolls) {
        if ((epoll = epoll_create1(EPOLL_CLOEXEC)) < 0) die("epoll_create1");
        std::thread(work, epoll).detach();
    }
    int listener = listen_on(std::atoi(argv[2]), argc == 5 ? argv[4] : "127.0.0.1"), on = 1;
    for (size_t next = 0;;) {
        int fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE) usleep(1000); // wait for connections to close
            continue;
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        serve(epolls[next++ % epolls.size()], fd);
    }
}
