"""Messages of the case studies, as Apache Thrift's Python library writes them: one line a message, `name protocol hex`.

    python -m venv v && v/bin/pip install thrift==0.25.0 && v/bin/python contracts/codecs/tests/oracle/thrift_messages.py > thrift.txt

With `check` as its first argument it reads such lines from standard input, decodes each and prints what it read.
"""
import sys
import uuid

from thrift.Thrift import TMessageType, TType
from thrift.protocol import TBinaryProtocol, TCompactProtocol
from thrift.transport import TTransport

S, I32, I64, BOOL, BYTE, I16, DOUBLE = TType.STRING, TType.I32, TType.I64, TType.BOOL, TType.BYTE, TType.I16, TType.DOUBLE


def text(s):
    return (S, s)


def struct(*fields):
    return (TType.STRUCT, fields)


def lst(etype, *values):
    return (TType.LIST, (etype, values))


CALL, REPLY, EXCEPTION, ONEWAY = TMessageType.CALL, TMessageType.REPLY, TMessageType.EXCEPTION, TMessageType.ONEWAY
TOKEN = "t" * 55 + "17"
NOTE = struct((1, text("guid20")), (2, text("test")))
MESSAGES = [
    ("add", CALL, 1, "add", struct((1, (I32, 2)), (2, (I32, 2)))),
    ("add-reply", REPLY, 1, "add", struct((0, (I32, 3)))),
    ("add-negative", CALL, -1, "add", struct((1, (I32, -2147483648)), (2, (I32, 2147483647)))),
    ("get_adder_info-reply", REPLY, 2, "get_adder_info", struct((0, struct((1, text("adder")), (2, (I32, 8001)))))),
    ("register_adder", CALL, 300, "register_adder", struct((1, text("adder")), (2, (I32, 8001)))),
    ("register_adder-reply", REPLY, 300, "register_adder", struct()),
    ("getNoteStoreUrl", CALL, 0, "getNoteStoreUrl", struct((1, text(TOKEN)))),
    ("getNoteStoreUrl-reply", REPLY, 0, "getNoteStoreUrl", struct((0, text("https://127.0.0.1:9444/")))),
    ("getNoteStoreUrl-threw", REPLY, 0, "getNoteStoreUrl", struct((1, struct((1, (I32, 8)), (2, text("token")))))),
    ("getNoteStoreUrl-failed", EXCEPTION, 0, "getNoteStoreUrl", struct((1, text("Internal error")), (2, (I32, 6)))),
    ("listLinkedNotebooks-reply", REPLY, 1, "listLinkedNotebooks", struct((0, lst(TType.STRUCT, struct(
        (5, text("asd")), (7, text("guid00")), (8, (I32, -5)), (9, text("https://127.0.0.1:9444/")))[1])))),
    ("authenticateToSharedNotebook-reply", REPLY, 2, "authenticateToSharedNotebook", struct((0, struct(
        (1, (I64, 1763777777000)), (2, text("temp10")), (3, (I64, -9223372036854775808)),
        (4, struct((1, (I32, 7)), (2, text("użytkownik")))), (8, (BOOL, False)))))),
    ("getSharedNotebookByAuth-reply", REPLY, 3, "getSharedNotebookByAuth", struct((0, struct(
        (1, (I64, 1)), (3, text("guid10")), (5, (BOOL, True)), (6, (BOOL, False)), (12, (BOOL, True)))))),
    ("findNotes", CALL, 4, "findNotes", struct(
        (1, text("temp10")),
        (2, struct((2, (BOOL, True)), (4, text("guid10")), (5, lst(S, *[text("tag%d" % i)[1] for i in range(16)])))),
        (3, (I32, 0)), (4, (I32, 10)))),
    ("findNotes-reply", REPLY, 4, "findNotes", struct((0, struct(
        (1, (I32, 0)), (2, (I32, 1)), (3, lst(TType.STRUCT, NOTE[1])))))),
    ("every", ONEWAY, 2147483647, "every", struct(
        (-1, (I32, 5)), (1, struct(
            (1, (BOOL, True)), (2, (BOOL, False)), (3, (BYTE, -128)), (4, (I16, -32768)), (5, (I32, 2147483647)),
            (6, (I64, -9223372036854775808)), (7, (DOUBLE, -0.1)), (8, text("zażółć")), (9, text("\x00b")),
            (30, lst(BOOL, True, False, True)), (31, (TType.SET, (I16, (-1, 0, 300)))),
            (32, (TType.MAP, (S, I64, (("a", 1), ("b", -1))))), (33, (TType.MAP, (I32, S, ()))),
            (34, lst(DOUBLE, *[i / 8 for i in range(20)])), (35, lst(TType.STRUCT, ((1, (BOOL, False)),), ())),
            (36, (TType.MAP, (BOOL, BYTE, ((True, 1), (False, 2))))),
            (32767, (TType.UUID, uuid.UUID("00112233-4455-6677-8899-aabbccddeeff"))))))),
]


def write(p, ttype, value):
    if ttype == TType.STRUCT:
        p.writeStructBegin("")
        for fid, (ftype, fvalue) in value:
            p.writeFieldBegin("", ftype, fid)
            write(p, ftype, fvalue)
            p.writeFieldEnd()
        p.writeFieldStop()
        p.writeStructEnd()
    elif ttype in (TType.LIST, TType.SET):
        etype, values = value
        (p.writeListBegin if ttype == TType.LIST else p.writeSetBegin)(etype, len(values))
        for element in values:
            write(p, etype, element)
        (p.writeListEnd if ttype == TType.LIST else p.writeSetEnd)()
    elif ttype == TType.MAP:
        ktype, vtype, pairs = value
        p.writeMapBegin(ktype, vtype, len(pairs))
        for key, element in pairs:
            write(p, ktype, key)
            write(p, vtype, element)
        p.writeMapEnd()
    else:
        {S: p.writeString, I32: p.writeI32, I64: p.writeI64, BOOL: p.writeBool, BYTE: p.writeByte, I16: p.writeI16,
         DOUBLE: p.writeDouble, TType.UUID: p.writeUuid}[ttype](value)


def read(p, ttype):
    if ttype == TType.STRUCT:
        fields = []
        p.readStructBegin()
        while True:
            _, ftype, fid = p.readFieldBegin()
            if ftype == TType.STOP:
                break
            fields.append("%d:%s" % (fid, read(p, ftype)))
            p.readFieldEnd()
        p.readStructEnd()
        return "{%s}" % ",".join(fields)
    if ttype in (TType.LIST, TType.SET):
        etype, count = p.readListBegin()
        elements = [read(p, etype) for _ in range(count)]
        p.readListEnd()
        return "[%s]" % ",".join(elements)
    if ttype == TType.MAP:
        ktype, vtype, count = p.readMapBegin()
        pairs = ["%s:%s" % (read(p, ktype), read(p, vtype)) for _ in range(count)]
        p.readMapEnd()
        return "<%s>" % ",".join(pairs)
    value = {S: p.readString, I32: p.readI32, I64: p.readI64, BOOL: p.readBool, BYTE: p.readByte, I16: p.readI16,
             DOUBLE: p.readDouble, TType.UUID: p.readUuid}[ttype]()
    return repr(value)


def protocols(transport):
    return {
        "binary": lambda: TBinaryProtocol.TBinaryProtocol(transport, strictRead=True, strictWrite=True),
        "old": lambda: TBinaryProtocol.TBinaryProtocol(transport, strictRead=False, strictWrite=False),
        "compact": lambda: TCompactProtocol.TCompactProtocol(transport),
    }


if sys.argv[1:] == ["check"]:
    for line in sys.stdin:
        name, protocol, data = line.split()
        p = protocols(TTransport.TMemoryBuffer(bytes.fromhex(data)))[protocol]()
        message = p.readMessageBegin()
        print(name, protocol, *message, read(p, TType.STRUCT))
else:
    for name, kind, sequence, method, (ttype, value) in MESSAGES:
        for protocol in ("binary", "old", "compact"):
            buffer = TTransport.TMemoryBuffer()
            p = protocols(buffer)[protocol]()
            p.writeMessageBegin(method, kind, sequence)
            write(p, ttype, value)
            p.writeMessageEnd()
            print(name, protocol, buffer.getvalue().hex())
