// Ping-pong server: a goroutine per connection, in idiomatic Go. The runtime respects the CPU affinity.
package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
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

func serve(conn net.Conn) {
	defer conn.Close()
	buffer := make([]byte, 16*1024)
	filled := 0
	for {
		got, err := conn.Read(buffer[filled:])
		if err != nil {
			return
		}
		filled += got
		whole := filled &^ 3
		answer(buffer[:whole])
		if whole > 0 {
			if _, err := conn.Write(buffer[:whole]); err != nil {
				return
			}
		}
		filled = copy(buffer, buffer[whole:filled]) // the incomplete word, at most three bytes
	}
}

func main() {
	hasAddress := len(os.Args) == 5 && os.Args[3] == "-a"
	if len(os.Args) != 3 && !hasAddress || os.Args[1] != "-p" {
		fmt.Fprintf(os.Stderr, "usage: %s -p PORT [-a ADDRESS]\n", os.Args[0])
		os.Exit(2)
	}
	address := "127.0.0.1"
	if hasAddress {
		address = os.Args[4]
	}
	// Package net sets SO_REUSEADDR, TCP_NODELAY and the maximum backlog.
	listener, err := net.Listen("tcp4", net.JoinHostPort(address, os.Args[2]))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("ready", listener.Addr().(*net.TCPAddr).Port)
	for {
		conn, err := listener.Accept()
		if err != nil {
			if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
				time.Sleep(time.Millisecond) // wait for connections to close
			}
			continue
		}
		go serve(conn)
	}
}
