import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.ArrayDeque;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;

/** Ping-pong server: a thread with its own selector per CPU. The main thread accepts and distributes connections. */
public final class Server {
    private static final int BUFFER = 16 * 1024;

    /** Responses replace words in the buffer. The first {@code whole} bytes are unsent responses. */
    private static final class Connection {
        final ByteBuffer buffer;
        int whole;

        Connection(ByteBuffer buffer) {
            this.buffer = buffer;
        }

        /** Receives, unless responses are unsent, then sends. Returns false at the end of the connection. */
        boolean turn(SelectionKey key, SocketChannel channel) throws IOException {
            if (whole == 0) {
                if (channel.read(buffer) < 0) return false;
                whole = buffer.position() & ~3;
                for (int at = 0; at < whole; at += 4) {
                    int word = buffer.getInt(at);
                    if (word == 0) Runtime.getRuntime().halt(0);
                    buffer.putInt(at, word + 1);
                }
                if (whole == 0) return true; // no complete word yet
                buffer.flip();
            }
            // Between turns, position and limit span the unsent responses and the incomplete word after them.
            int end = buffer.limit();
            buffer.limit(whole);
            channel.write(buffer);
            boolean sent = !buffer.hasRemaining();
            buffer.limit(end);
            if (sent) {
                buffer.compact();
                whole = 0;
            }
            int wanted = sent ? SelectionKey.OP_READ : SelectionKey.OP_WRITE;
            if (key.interestOps() != wanted) key.interestOps(wanted);
            return true;
        }
    }

    private static final class Worker implements Runnable {
        private final Selector selector;
        private final Queue<SocketChannel> dealt = new ConcurrentLinkedQueue<>();
        // Only the garbage collector frees direct memory, so buffers of closed connections are reused.
        private final ArrayDeque<ByteBuffer> spare = new ArrayDeque<>();

        Worker() throws IOException {
            selector = Selector.open();
            new Thread(this).start();
        }

        void deal(SocketChannel channel) {
            dealt.add(channel);
            selector.wakeup();
        }

        @Override
        public void run() {
            try {
                while (true) {
                    selector.select(this::turn);
                    for (SocketChannel channel; (channel = dealt.poll()) != null;) {
                        ByteBuffer buffer = spare.isEmpty() ? ByteBuffer.allocateDirect(BUFFER) : spare.pop().clear();
                        channel.register(selector, SelectionKey.OP_READ, new Connection(buffer));
                    }
                }
            } catch (IOException | OutOfMemoryError error) {
                System.err.println(error);
                Runtime.getRuntime().halt(1);
            }
        }

        private void turn(SelectionKey key) {
            SocketChannel channel = (SocketChannel) key.channel();
            Connection connection = (Connection) key.attachment();
            try {
                if (connection.turn(key, channel)) return;
            } catch (IOException reset) {
                // closed below
            }
            try {
                channel.close();
            } catch (IOException ignored) {
                // already closed
            }
            spare.push(connection.buffer);
        }
    }

    public static void main(String[] arguments) throws IOException, InterruptedException {
        boolean hasAddress = arguments.length == 4 && arguments[2].equals("-a");
        if (arguments.length != 2 && !hasAddress || !arguments[0].equals("-p")) {
            System.err.println("usage: java-nio -p PORT [-a ADDRESS]");
            System.exit(2);
        }
        Worker[] workers = new Worker[Runtime.getRuntime().availableProcessors()]; // respects the CPU affinity of the process
        for (int i = 0; i < workers.length; i++) workers[i] = new Worker();
        ServerSocketChannel listener = ServerSocketChannel.open();
        listener.setOption(StandardSocketOptions.SO_REUSEADDR, true);
        InetAddress address = InetAddress.getByName(hasAddress ? arguments[3] : "127.0.0.1");
        int backlog = 1 << 16; // the kernel caps it at net.core.somaxconn
        listener.bind(new InetSocketAddress(address, Integer.parseInt(arguments[1])), backlog);
        System.out.println("ready " + listener.socket().getLocalPort());
        for (int next = 0;; next = (next + 1) % workers.length) {
            try {
                SocketChannel channel = listener.accept();
                channel.configureBlocking(false);
                channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
                workers[next].deal(channel);
            } catch (IOException error) {
                Thread.sleep(1); // too many files: wait for connections to close
            }
        }
    }
}
