#!/usr/bin/env node
// Ping-pong server: a cluster with a process per CPU. Node's primary process distributes connections round-robin.
'use strict';
const cluster = require('node:cluster');
const net = require('node:net');
const os = require('node:os');

// Replaces each word by its response. A zero ends the process, and with it the primary and the other workers.
function answer(words) {
  for (let at = 0; at < words.length; at += 4) {
    const word = words.readUInt32BE(at);
    if (word === 0) process.exit(0);
    words.writeUInt32BE((word + 1) >>> 0, at);
  }
}

function serve(socket) {
  let begun = Buffer.alloc(0); // the incomplete word, at most three bytes
  socket.on('data', (bytes) => {
    if (begun.length > 0) bytes = Buffer.concat([begun, bytes]);
    const whole = bytes.length & ~3;
    begun = bytes.subarray(whole);
    if (whole === 0) return;
    const words = bytes.subarray(0, whole);
    answer(words);
    if (!socket.write(words)) socket.pause(); // stop reading while the peer does not read
  });
  socket.on('drain', () => socket.resume());
  socket.on('error', () => {}); // the socket closes itself after a reset
}

function lead() {
  let listening = 0;
  const workers = os.availableParallelism(); // respects the CPU affinity of the process
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

const [, , flag, port, addressFlag, address = '127.0.0.1'] = process.argv;
if (flag !== '-p' || port === undefined || (addressFlag !== undefined && addressFlag !== '-a') || process.argv.length === 5) {
  console.error('usage: node -p PORT [-a ADDRESS]');
  process.exit(2);
} else if (cluster.isPrimary) {
  lead();
} else {
  // Node sets SO_REUSEADDR itself. The primary process listens, with the options of its workers.
  const server = net.createServer({ noDelay: true }, serve);
  server.listen({ port: Number(port), host: address, backlog: 65535 }); // the kernel caps it at net.core.somaxconn
}
