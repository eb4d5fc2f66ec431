#!/usr/bin/env python3
r"""replay.py FILE PORT: sends the commands of a table to a server and compares its replies with the
table's, byte for byte. replay.py --record FILE PORT: prints the table with the server's replies.

A line of the table is a comment (#), or REQUEST => REPLY. The reply has the escapes \xHH, \r, \n,
\\, \" and \*N,c for N times the character c. A request is

  COMMAND ARG...    a command, sent by connection 1; words in quotes may contain the same escapes
  N> COMMAND ...    the same by connection N (1 to 4)
  N~ COMMAND ...    the same; the reply, which differs from server to server, is read and ignored
  N<                nothing is sent: one more reply is read from connection N
  ! BYTES           bytes as they are, on a connection of their own; the reply is all that comes
  ? N...            no reply but COMMAND...: each, sent with so many arguments, has a wrong number of
                    them; A|B is the subcommand B of A"""
import re
import socket
import sys

sys.dont_write_bytecode = True  # the tree stays as it is
from wire import Wire, encode

NAMED = {b"r": b"\r", b"n": b"\n"}


def plain(text):
    return re.sub(rb"\\(?:x(..)|\*(\d+),(.)|(.))",
                  lambda m: bytes([int(m[1], 16)]) if m[1] else m[3] * int(m[2]) if m[2]
                  else NAMED.get(m[4], m[4]), text, flags=re.DOTALL)


def escaped(reply):
    def escape(m):
        c = m[0][:1]
        if len(m[0]) > 1:
            return b"\\*%d,%s" % (len(m[0]), c)
        return {b"\r": b"\\r", b"\n": b"\\n", b"\\": b"\\\\"}.get(c, b"\\x%02x" % c[0])

    return re.sub(rb"([0-9A-Za-z])\1{50,}|[^ -~]|\\", escape, reply, flags=re.DOTALL)


def words_of(command):
    return [plain(quoted) if not bare else bare
            for quoted, bare in re.findall(rb'"((?:\\.|[^"\\])*)"|([^ "][^ ]*)', command)]


def all_that_comes(port, data):
    wire = Wire(port, 10)
    wire.send(data)
    wire.socket.shutdown(socket.SHUT_WR)
    reply = wire.replies.read()
    wire.close()
    return reply


def takes(wire, name, counts):
    """Of the numbers of arguments the first one that the command does not refuse, or None."""
    refused = b"-ERR wrong number of arguments for '%s' command\r\n" % name.lower()
    return next((n for n in counts if wire.ask(*name.split(b"|"), *[b"x"] * n) != refused), None)


def replay(table, port, records):
    wires, commands, wrong = {}, 0, 0
    for number, line in enumerate(table, 1):
        line = line.rstrip(b"\n")
        request, arrow, wanted = line.partition(b" => ")
        if line[:1] in b"#":
            if records:
                print(line.decode())
            continue
        if not arrow:
            sys.exit(f"replay: line {number} has no \" => \"")
        if request[:1] == b"?":
            commands += 1
            wires[b"1"] = wires.get(b"1") or Wire(port, 10)
            for name in wanted.split():
                if (n := takes(wires[b"1"], name, map(int, request[1:].split()))) is not None:
                    wrong += 1
                    print(f"line {number}: {name.decode()} takes {n} arguments")
            if records:
                print(line.decode())
            continue
        named = re.fullmatch(rb"([1-4])([<>~]) ?(.*)", request)
        which, how, command = named.groups() if named else (b"1", b">", request)
        if request[:1] == b"!":
            reply = all_that_comes(port, plain(request[2:]))
        else:
            wire = wires[which] = wires.get(which) or Wire(port, 10)
            if how != b"<":
                wire.send(encode(*words_of(command)))
            reply = wire.read() if how != b"~" else wire.read()[:0]
        commands += 1
        if records:
            print(f"{request.decode()} => {escaped(reply).decode()}")
        elif reply != plain(wanted):
            wrong += 1
            print(f"line {number}: {request.decode()}: expected {wanted.decode()}\n"
                  f"  got {escaped(reply).decode()}")
    if not records:
        print(f"replay: {commands} commands, {wrong} replies differ")
    return wrong > 0 or commands == 0


if __name__ == "__main__":
    with open(sys.argv[-2], "rb") as file:
        sys.exit(replay(file, int(sys.argv[-1]), sys.argv[1] == "--record"))
