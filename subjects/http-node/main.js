#!/usr/bin/env node
// HTTP server: Node's http and http2 modules in a cluster with a process per CPU, or without a cluster for one worker.
// The primary process accepts and distributes connections round-robin.
'use strict';
const cluster = require('node:cluster');
const http = require('node:http');
const http2 = require('node:http2');
const os = require('node:os');
const { parseArgs } = require('node:util');

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n'); // RFC 9113, section 3.4
const FILL = Buffer.alloc(1 << 20, 'x'); // the maximum N of /bytes/N

function body(url) {
  if (url === '/') return 'test';
  if (url === '/plaintext') return 'Hello, World!';
  const size = /^\/bytes\/(\d{1,7})$/.exec(url)?.[1];
  return size <= FILL.length ? FILL.subarray(0, size) : undefined;
}

function answer(method, url) {
  if (method !== 'GET' && method !== 'HEAD') return [405, 'method not allowed'];
  const text = body(url);
  return text === undefined ? [404, 'not found'] : [200, text];
}

// Node omits the body for HEAD.
function answerHttp1(request, response) {
  const [status, text] = answer(request.method, request.url);
  response.writeHead(status, { 'Content-Type': 'text/plain', 'Content-Length': text.length }).end(text);
}

function answerHttp2(stream, headers) {
  stream.on('error', ignore);
  if (stream.destroyed) return; // already reset by the client
  const [status, text] = answer(headers[':method'], headers[':path']);
  stream.respond({ ':status': status, 'content-type': 'text/plain', 'content-length': text.length });
  stream.end(text);
}

function ignore() {} // broken connections and streams close themselves

// Node detects HTTP/2 only over TLS, so this handler reads the start of each connection.
function detectHttp2(server) {
  const [serveHttp1] = server.listeners('connection');
  const serverOfHttp2 = http2.createServer().on('stream', answerHttp2);
  server.removeAllListeners('connection');
  server.on('connection', (socket) => {
    let start = Buffer.alloc(0);
    socket.allowHalfOpen = false; // HTTP/2 needs this, the http module the opposite
    const read = () => {
      start = Buffer.concat([start, socket.read() ?? Buffer.alloc(0)]);
      const isPreface = PREFACE.subarray(0, start.length).equals(start.subarray(0, PREFACE.length));
      if (isPreface && start.length < PREFACE.length) return;
      socket.off('readable', read).off('error', ignore).unshift(start);
      if (isPreface) return serverOfHttp2.emit('connection', socket);
      socket.allowHalfOpen = true;
      serveHttp1.call(server, socket);
    };
    socket.on('readable', read).on('error', ignore);
  });
}

function serve(host, port) {
  // By default Node closes connections after 5 s without requests, which fails clients with a longer think time.
  const server = http.createServer({ noDelay: true, keepAliveTimeout: 75_000 }, answerHttp1);
  detectHttp2(server);
  server.listen({ port, host, backlog: 65535 }, () => { // the kernel caps the backlog at net.core.somaxconn
    if (cluster.isPrimary) console.log(`ready ${server.address().port}`);
  });
}

function lead(workers) {
  let listening = 0;
  for (let i = 0; i < workers; i++) cluster.fork();
  cluster.on('listening', (_, address) => {
    if (++listening === workers) console.log(`ready ${address.port}`);
  });
  const stop = (code) => {
    for (const worker of Object.values(cluster.workers)) worker.process.kill('SIGKILL');
    process.exit(code);
  };
  cluster.on('exit', (_, code) => stop(code ?? 1));
  process.on('SIGTERM', () => stop(0));
}

let address, port, workers;
try {
  const { values } = parseArgs({ options: { port: { type: 'string', short: 'p' }, threads: { type: 'string', short: 't' }, address: { type: 'string', short: 'a', default: '127.0.0.1' } } });
  ({ address } = values);
  port = Number(values.port);
  workers = Number(values.threads ?? os.availableParallelism()); // respects the CPU affinity of the process
} catch {}
if (!(port >= 0 && workers >= 1)) {
  console.error('usage: http-node -p PORT [-t WORKERS] [-a ADDRESS]');
  process.exit(2);
} else if (cluster.isPrimary && workers > 1) {
  lead(workers);
} else {
  serve(address, port);
}
