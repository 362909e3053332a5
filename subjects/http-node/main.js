#!/usr/bin/env node
// HTTP server: Node's http module in a cluster with a process per CPU, or without a cluster for one worker.
// The primary process accepts and distributes connections round-robin.
'use strict';
const cluster = require('node:cluster');
const http = require('node:http');
const os = require('node:os');
const { parseArgs } = require('node:util');

const FILL = Buffer.alloc(1 << 20, 'x'); // the maximum N of /bytes/N

function body(url) {
  if (url === '/') return 'test';
  if (url === '/plaintext') return 'Hello, World!';
  const size = /^\/bytes\/(\d{1,7})$/.exec(url)?.[1];
  return size <= FILL.length ? FILL.subarray(0, size) : undefined;
}

function answer(request, response) {
  let [status, text] = [200, body(request.url)];
  if (request.method !== 'GET' && request.method !== 'HEAD') [status, text] = [405, 'method not allowed'];
  else if (text === undefined) [status, text] = [404, 'not found'];
  // Node omits the body for HEAD.
  response.writeHead(status, { 'Content-Type': 'text/plain', 'Content-Length': text.length }).end(text);
}

function serve(host, port) {
  // By default Node closes connections after 5 s without requests, which fails clients with a longer think time.
  const server = http.createServer({ noDelay: true, keepAliveTimeout: 75_000 }, answer);
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
