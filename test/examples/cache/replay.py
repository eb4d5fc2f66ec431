#!/usr/bin/env python3
r"""replay.py FILE PORT: sends the commands of a table to a server and compares its replies with the
table's, byte for byte.

A line of the table is a comment (#), or REQUEST => REPLY. The reply has the escapes \xHH, \r, \n,
\\, \" and \*N,c for N times the character c. A request is

  COMMAND ARG...    a command, sent by connection 1; words in quotes may contain the same escapes
  A {B | C} D       A B D, then A C D: each has this reply
  COMMAND ; COMMAND a pipeline; the reply is that of all
  N> COMMAND ...    the same by connection N (1 to 4)
  N~ COMMAND ...    the same; the reply, which differs from server to server, is read and ignored
  N<                nothing is sent: one more reply is read from connection N
  ! BYTES           bytes as they are, on a connection of their own; the reply is all that comes
  ? N...            no reply but COMMAND...: each, sent with so many arguments, has a wrong number of
                    them; A|B is the subcommand B of A

REQUEST => REPLY => EVENT KEY | EVENT KEY: connection 2, which has subscribed to __key*__:*, gets
these keyevent messages."""
import re
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
    wire.end_of_requests()
    reply = wire.replies.read()
    wire.close()
    return reply


def takes(wire, name, counts):
    """Of the numbers of arguments the first one that the command does not refuse, or None."""
    refused = b"-ERR wrong number of arguments for '%s' command\r\n" % name.lower()
    return next((n for n in counts if wire.ask(*name.split(b"|"), *[b"x"] * n) != refused), None)


def forms(request):
    alternatives = re.fullmatch(rb"(.*)\{(.*)\}(.*)", request)
    if not alternatives or request[:1] == b"!":
        return [request]
    before, each, after = alternatives.groups()
    return [before + one + after for one in each.split(b" | ")]


def message(event):
    words = [b"pmessage", b"__key*__:*", b"__keyevent@0__:%s" % event[0], event[1]]
    return encode(*words)


class Replay:
    def __init__(self, port):
        self.port, self.wires, self.commands, self.wrong = port, {}, 0, 0

    def wire(self, name):
        self.wires[name] = self.wires.get(name) or Wire(self.port, 10)
        return self.wires[name]

    def expect(self, what, wanted, got):
        if got != wanted:
            self.wrong += 1
            print(f"{what}: expected {escaped(wanted).decode()}\n  got {escaped(got).decode()}")

    def reply_to(self, request):
        if request[:1] == b"!":
            return all_that_comes(self.port, plain(request[2:]))
        named = re.fullmatch(rb"([1-4])([<>~]) ?(.*)", request)
        which, how, commands = named.groups() if named else (b"1", b">", request)
        wire, commands = self.wire(which), commands.split(b" ; ")
        if how != b"<":
            wire.send(b"".join(encode(*words_of(command)) for command in commands))
        reply = b"".join(wire.read() for _ in commands)
        return reply if how != b"~" else b""

    def row(self, where, request, wanted, events):
        if request[:1] == b"?":
            self.commands += 1
            for name in wanted.split():
                n = takes(self.wire(b"1"), name, map(int, request[1:].split()))
                self.expect(f"{where}: arguments of {name.decode()}", b"None", str(n).encode())
            return
        for form in forms(request):
            self.commands += 1
            what = f"{where}: {form.decode()}"
            self.expect(what, plain(wanted), self.reply_to(form))
            for event in events:
                self.expect(f"{what}: event", message(event.split()), self.wire(b"2").read())


if __name__ == "__main__":
    replay = Replay(int(sys.argv[2]))
    with open(sys.argv[1], "rb") as table:
        for number, line in enumerate(table, 1):
            request, *wanted = line.rstrip(b"\n").split(b" => ")
            if line[:1] in (b"#", b"\n"):
                continue
            if not wanted:
                sys.exit(f"replay: line {number} has no \" => \"")
            events = wanted[1].split(b" | ") if wanted[1:] else []
            replay.row(f"line {number}", request, wanted[0], events)
    print(f"replay: {replay.commands} commands, {replay.wrong} replies differ")
    sys.exit(replay.wrong > 0 or replay.commands == 0)
