//go:build go1.24

// HTTP server: net/http, a goroutine per connection. The runtime respects the CPU affinity.
package main

import (
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
)

const bytesMax = 1 << 20 // the maximum N of /bytes/N

var fill = []byte(strings.Repeat("x", bytesMax))

func answer(body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.Write(body)
	}
}

func main() {
	port := flag.Int("p", -1, "port; 0 takes a free one")
	address := flag.String("a", "127.0.0.1", "address")
	threads := flag.Int("t", 0, "threads that run Go code at the same time; 0: one for each core")
	flag.Parse()
	if *port < 0 || *threads < 0 || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if *threads > 0 {
		runtime.GOMAXPROCS(*threads)
	}
	routes := http.NewServeMux() // a route for GET also serves HEAD
	routes.HandleFunc("GET /{$}", answer([]byte("test")))
	routes.HandleFunc("GET /plaintext", answer([]byte("Hello, World!")))
	routes.HandleFunc("GET /bytes/{size}", func(w http.ResponseWriter, r *http.Request) {
		size, err := strconv.Atoi(r.PathValue("size"))
		if err != nil || size < 0 || size > bytesMax {
			http.NotFound(w, r)
			return
		}
		answer(fill[:size])(w, r)
	})
	// Package net sets SO_REUSEADDR, TCP_NODELAY and the maximum backlog.
	listener, err := net.Listen("tcp4", net.JoinHostPort(*address, strconv.Itoa(*port)))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("ready", listener.Addr().(*net.TCPAddr).Port)
	// A server with both would wait for the 14 bytes after which it can tell them apart, even on shorter requests.
	protocols := new(http.Protocols)
	isHTTP2 := os.Getenv("HTTP_VERSION") == "2"
	protocols.SetHTTP1(!isHTTP2)
	protocols.SetUnencryptedHTTP2(isHTTP2)
	server := http.Server{Handler: routes, Protocols: protocols}
	fmt.Fprintln(os.Stderr, server.Serve(listener))
	os.Exit(1)
}
