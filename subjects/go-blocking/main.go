// Ping-pong server: Go without its poller. Each connection has its own operating system thread and blocks in read and
// write, like the C server with a thread per connection.
package main

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"
)

// answer replaces each word with its response. A zero ends the process.
func answer(words []byte) {
	for ; len(words) > 0; words = words[4:] {
		word := binary.BigEndian.Uint32(words)
		if word == 0 {
			os.Exit(0)
		}
		binary.BigEndian.PutUint32(words, word+1)
	}
}

func serve(fd int) {
	runtime.LockOSThread() // never unlocked: the thread ends with the connection
	defer syscall.Close(fd)
	buffer := make([]byte, 16*1024)
	filled := 0
	for {
		got, err := syscall.Read(fd, buffer[filled:])
		if err == syscall.EINTR { // the Go runtime preempts with signals
			continue
		}
		if err != nil || got == 0 {
			return
		}
		filled += got
		whole := filled &^ 3
		answer(buffer[:whole])
		for sent := 0; sent < whole; {
			put, err := syscall.Write(fd, buffer[sent:whole])
			if err == syscall.EINTR {
				continue
			}
			if err != nil {
				return
			}
			sent += put
		}
		filled = copy(buffer, buffer[whole:filled]) // the incomplete word, at most three bytes
	}
}

func check(what string, err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", what, err)
		os.Exit(1)
	}
}

func main() {
	hasAddress := len(os.Args) == 5 && os.Args[3] == "-a"
	if len(os.Args) != 3 && !hasAddress || os.Args[1] != "-p" {
		fmt.Fprintf(os.Stderr, "usage: %s -p PORT [-a ADDRESS]\n", os.Args[0])
		os.Exit(2)
	}
	host := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	if hasAddress {
		given, err := netip.ParseAddr(os.Args[4])
		check("address", err)
		host = given
	}
	port, err := strconv.ParseUint(os.Args[2], 10, 16)
	check("port", err)
	debug.SetMaxThreads(1 << 20) // the system's limit, not the runtime's 10,000
	listener, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	check("socket", err)
	check("setsockopt", syscall.SetsockoptInt(listener, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1))
	check("bind", syscall.Bind(listener, &syscall.SockaddrInet4{Port: int(port), Addr: host.As4()}))
	check("listen", syscall.Listen(listener, 1<<16)) // the kernel caps it at net.core.somaxconn
	address, err := syscall.Getsockname(listener)
	check("getsockname", err)
	fmt.Println("ready", address.(*syscall.SockaddrInet4).Port)
	for {
		fd, _, err := syscall.Accept4(listener, syscall.SOCK_CLOEXEC)
		if err != nil {
			if err == syscall.EMFILE || err == syscall.ENFILE {
				time.Sleep(time.Millisecond) // wait for connections to close
			}
			continue
		}
		syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1)
		go serve(fd)
	}
}
