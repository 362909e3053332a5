import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFutureListener;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.nio.NioIoHandler;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.handler.codec.ByteToMessageDecoder;
import io.netty.handler.codec.DateFormatter;
import io.netty.handler.codec.http.DefaultFullHttpResponse;
import io.netty.handler.codec.http.FullHttpResponse;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpHeaderValues;
import io.netty.handler.codec.http.HttpObject;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpServerCodec;
import io.netty.handler.codec.http.HttpUtil;
import io.netty.handler.codec.http.HttpVersion;
import io.netty.handler.codec.http2.DefaultHttp2DataFrame;
import io.netty.handler.codec.http2.DefaultHttp2Headers;
import io.netty.handler.codec.http2.DefaultHttp2HeadersFrame;
import io.netty.handler.codec.http2.DefaultHttp2WindowUpdateFrame;
import io.netty.handler.codec.http2.Http2CodecUtil;
import io.netty.handler.codec.http2.Http2DataFrame;
import io.netty.handler.codec.http2.Http2FrameCodecBuilder;
import io.netty.handler.codec.http2.Http2Headers;
import io.netty.handler.codec.http2.Http2HeadersFrame;
import io.netty.handler.codec.http2.Http2StreamFrame;
import io.netty.util.AsciiString;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Date;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** HTTP server: Netty on java.nio, with an event loop per CPU. Netty distributes connections round-robin. */
public final class Server extends SimpleChannelInboundHandler<HttpObject> {
    /** The maximum N of /bytes/N. */
    private static final int BYTES_MAX = 1 << 20;
    private static final byte[] FILL = new byte[BYTES_MAX];
    private static final byte[] TEST = bytes("test");
    private static final byte[] HELLO = bytes("Hello, World!");

    /** The Date header of the current second. */
    private static volatile AsciiString date = now();

    /** Adds the handlers of HTTP/2 if a connection starts with its preface (RFC 9113 section 3.4), else of HTTP/1.1. */
    private static final class VersionDetector extends ByteToMessageDecoder {
        private static final ByteBuf PREFACE = Http2CodecUtil.connectionPrefaceBuf();

        @Override
        protected void decode(ChannelHandlerContext context, ByteBuf in, List<Object> out) {
            int size = Math.min(in.readableBytes(), PREFACE.readableBytes());
            boolean isPreface = ByteBufUtil.equals(in, in.readerIndex(), PREFACE, 0, size);
            if (isPreface && size < PREFACE.readableBytes()) return;
            if (isPreface) {
                context.pipeline()
                    .addBefore("server", null, Http2FrameCodecBuilder.forServer().build())
                    .addBefore("server", null, new Http2Server());
            } else {
                context.pipeline().addBefore("server", null, new HttpServerCodec());
            }
            context.pipeline().remove(this);
        }
    }

    /** Handles the frames of streams. A channel per stream, as by Http2MultiplexHandler, takes twice the CPU time. */
    private static final class Http2Server extends SimpleChannelInboundHandler<Http2StreamFrame> {
        @Override
        protected void channelRead0(ChannelHandlerContext context, Http2StreamFrame message) {
            if (message instanceof Http2DataFrame data) { // request bodies are ignored
                int size = data.initialFlowControlledBytes();
                context.write(new DefaultHttp2WindowUpdateFrame(size).stream(data.stream()));
            } else if (message instanceof Http2HeadersFrame frame && frame.headers().method() != null) { // no trailers
                String method = frame.headers().method().toString();
                Answer answer = answer(method, frame.headers().path().toString());
                Http2Headers headers = new DefaultHttp2Headers()
                    .status(answer.status.codeAsText())
                    .set(HttpHeaderNames.DATE, date)
                    .set(HttpHeaderNames.CONTENT_TYPE, HttpHeaderValues.TEXT_PLAIN)
                    .setInt(HttpHeaderNames.CONTENT_LENGTH, answer.body.readableBytes());
                boolean isHead = method.equals("HEAD");
                context.write(new DefaultHttp2HeadersFrame(headers, isHead).stream(frame.stream()));
                if (!isHead) context.write(new DefaultHttp2DataFrame(answer.body, true).stream(frame.stream()));
            }
        }
    }

    private record Answer(HttpResponseStatus status, ByteBuf body) {
        Answer(HttpResponseStatus status, String text) {
            this(status, Unpooled.wrappedBuffer(bytes(text)));
        }
    }

    private static Answer answer(String method, String uri) {
        if (!method.equals("GET") && !method.equals("HEAD")) {
            return new Answer(HttpResponseStatus.METHOD_NOT_ALLOWED, "method not allowed");
        }
        ByteBuf body = body(uri);
        if (body == null) return new Answer(HttpResponseStatus.NOT_FOUND, "not found");
        return new Answer(HttpResponseStatus.OK, body);
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }

    private static AsciiString now() {
        return AsciiString.of(DateFormatter.format(new Date()));
    }

    private static ByteBuf body(String uri) {
        if (uri.equals("/")) return Unpooled.wrappedBuffer(TEST);
        if (uri.equals("/plaintext")) return Unpooled.wrappedBuffer(HELLO);
        if (uri.matches("/bytes/[0-9]{1,7}")) {
            int size = Integer.parseInt(uri.substring("/bytes/".length()));
            if (size <= BYTES_MAX) return Unpooled.wrappedBuffer(FILL, 0, size);
        }
        return null;
    }

    @Override
    protected void channelRead0(ChannelHandlerContext context, HttpObject message) {
        if (message.decoderResult().isFailure()) {
            send(context, new Answer(HttpResponseStatus.BAD_REQUEST, "bad request"), false);
        } else if (message instanceof HttpRequest request) { // request bodies are ignored
            send(context, answer(request.method().name(), request.uri()), HttpUtil.isKeepAlive(request));
        }
    }

    private static void send(ChannelHandlerContext context, Answer answer, boolean keep) {
        FullHttpResponse response = new DefaultFullHttpResponse(HttpVersion.HTTP_1_1, answer.status, answer.body);
        response.headers()
            .set(HttpHeaderNames.DATE, date)
            .set(HttpHeaderNames.CONTENT_TYPE, HttpHeaderValues.TEXT_PLAIN)
            .setInt(HttpHeaderNames.CONTENT_LENGTH, answer.body.readableBytes());
        HttpUtil.setKeepAlive(response, keep);
        var written = context.write(response); // the codec omits the body for HEAD
        if (!keep) written.addListener(ChannelFutureListener.CLOSE);
    }

    @Override
    public void channelReadComplete(ChannelHandlerContext context) {
        context.flush(); // one write for the responses to pipelined requests
    }

    @Override
    public void channelWritabilityChanged(ChannelHandlerContext context) {
        context.channel().config().setAutoRead(context.channel().isWritable()); // stop reading while the peer does not read
        context.fireChannelWritabilityChanged();
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
        context.close(); // resets are ignored
    }

    public static void main(String[] arguments) throws Exception {
        int port = -1;
        String address = "127.0.0.1";
        int threads = Runtime.getRuntime().availableProcessors(); // respects the CPU affinity of the process
        try {
            for (int i = 0; i < arguments.length; i += 2) {
                String value = arguments[i + 1];
                switch (arguments[i]) {
                    case "-a" -> address = value;
                    case "-p" -> port = Integer.parseInt(value);
                    case "-t" -> threads = Integer.parseInt(value);
                    default -> throw new IllegalArgumentException(arguments[i]);
                }
            }
        } catch (RuntimeException mistake) {
            port = -1;
        }
        if (port < 0 || threads < 1) {
            System.err.println("usage: http-netty -p PORT [-t THREADS] [-a ADDRESS]");
            System.exit(2);
        }
        Arrays.fill(FILL, (byte) 'x');
        EventLoopGroup acceptor = new MultiThreadIoEventLoopGroup(1, NioIoHandler.newFactory());
        EventLoopGroup workers = new MultiThreadIoEventLoopGroup(threads, NioIoHandler.newFactory());
        acceptor.scheduleAtFixedRate(() -> date = now(), 0, 1, TimeUnit.SECONDS);
        Channel listener = new ServerBootstrap()
            .group(acceptor, workers)
            .channel(NioServerSocketChannel.class)
            .option(ChannelOption.SO_BACKLOG, 65535) // the kernel caps it at net.core.somaxconn
            .option(ChannelOption.SO_REUSEADDR, true)
            .childOption(ChannelOption.TCP_NODELAY, true)
            .childHandler(new ChannelInitializer<Channel>() {
                @Override
                protected void initChannel(Channel channel) {
                    channel.pipeline().addLast(new VersionDetector()).addLast("server", new Server());
                }
            })
            .bind(address, port).sync().channel();
        System.out.println("ready " + ((InetSocketAddress) listener.localAddress()).getPort());
    }
}
