"""A client of the tests: requests, and replies read one by one."""
import socket


class Wire:
    def __init__(self, port, patience=30):
        self.socket = socket.create_connection(("127.0.0.1", port), patience)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.replies = self.socket.makefile("rb")

    def close(self):
        self.replies.close()
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def end_of_requests(self):
        self.socket.shutdown(socket.SHUT_WR)

    def read(self):
        """One whole reply, as its bytes."""
        line = self.replies.readline()
        if not line.endswith(b"\n"):
            raise ConnectionError("the server did not reply")
        kind, count = line[:1], line[1:].strip()
        if kind in b"$=" and int(count) >= 0:
            line += self.replies.read(int(count) + 2)
        elif kind in b"*~>%":
            line += b"".join(self.read() for _ in range(int(count) * (2 if kind == b"%" else 1)))
        return line

    def ask(self, *words):
        self.send(encode(*words))
        return self.read()

    def info(self, name):
        """A number of INFO."""
        return int(self.ask("INFO").split(name.encode() + b":")[1].split(b"\r\n")[0])


def encode(*words):
    words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)
