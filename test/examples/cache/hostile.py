#!/usr/bin/env python3
"""hostile.py PORT: what a server must survive from its clients. After each case the server serves
another client immediately, and its memory has stayed within bounds."""
import os
import random
import resource
import signal
import socket
import struct
import sys
import time

sys.dont_write_bytecode = True  # the tree stays as it is
from wire import Wire, encode

MIB = 1 << 20
ENDED = "client_output_buffer_limit_disconnections"
port = int(sys.argv[1])
failures = 0


def expect(holds, what):
    global failures
    if not holds:
        print(f"hostile: failed: {what}")
        failures += 1


def connect():
    return socket.create_connection(("127.0.0.1", port), 60)


def info(name):
    wire = Wire(port)
    n = wire.info(name)
    wire.close()
    return n


def within_seconds(seconds, condition, what):
    until = time.monotonic() + seconds
    while not (holds := condition()) and time.monotonic() < until:
        time.sleep(0.05)
    expect(holds, what)


def expect_service():
    begin = time.monotonic()
    wire = Wire(port)
    expect(wire.ask("SET", "alive", "yes") == b"+OK\r\n", "SET by another client")
    expect(wire.ask("GET", "alive") == b"$3\r\nyes\r\n", "GET by another client")
    wire.close()
    expect(time.monotonic() - begin < 5, "another client is served at once")


def killed():
    """Clients are killed in the middle of commands, or while subscribed."""
    wire = Wire(port)
    wire.ask("CONFIG", "SET", "notify-keyspace-events", "KEA")
    wire.close()

    def be_killed(number):
        wire = Wire(port)
        if number % 3 == 0:
            wire.send(encode("SUBSCRIBE", "__keyevent@0__:expired"))
        while True:
            if number % 3 == 0:
                time.sleep(1)
            wire.send(b"".join(encode("SET", f"k{number}:{i}", "value", "PX", 1 + i % 10)
                               for i in range(100)))
            if number % 3 == 1:
                wire.read()

    for round_ in range(4):
        children = []
        for i in range(12):
            child = os.fork()
            if child == 0:
                be_killed(round_ * 12 + i)
            children.append(child)
        time.sleep(0.05)
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        expect_service()


def half():
    """Half a command, then silence; half of a large value; a reset connection."""
    parts = [b"*", b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100", b"*2\r\n$3\r\nGET\r\n$5\r\nab",
             b"SET inline", b"*1000000\r\n$1\r\na\r\n",
             b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$500000000\r\nbegins"]
    before = info("used_memory_rss")
    clients = [connect() for _ in range(600)]
    for i, client in enumerate(clients):
        client.sendall(parts[i % len(parts)])
    expect_service()
    expect(info("used_memory_rss") < before + 32 * MIB,
           "half commands hold what was sent, not what was announced")
    for client in clients[::2]:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    for client in clients:
        client.close()


def deaf():
    """Clients that never read the replies are disconnected when these reach the limit."""
    wire = Wire(port)
    wire.ask("SET", "large", "v" * 100000)
    before, ended = wire.info("used_memory_rss"), wire.info(ENDED)
    for _ in range(6):
        client = connect()
        try:
            for _ in range(6000):
                client.sendall(b"GET large\r\n" * 1000)
            expect(False, "a client that reads no replies is disconnected")
        except OSError:
            pass
        expect_service()
        client.close()
    expect(wire.info(ENDED) == ended + 6, "each is counted")
    within_seconds(5, lambda: wire.info("used_memory_rss") < before + 128 * MIB,
                   "the memory of their replies is given back")
    wire.close()


def long():
    """64 MiB of commands, written before the first reply is read."""
    request = encode("SET", "long", "0123456789abcdef" * 2)
    count = 64 * MIB // len(request) + 1
    client, got = connect(), 0
    client.sendall(request * count)
    while got < 5 * count and (data := client.recv(65536)):
        got += len(data)
    expect(got == 5 * count, "each command has its reply")
    client.close()


def slow():
    """A subscriber that never reads is disconnected, and the publisher never waits."""
    wire, client = Wire(port), connect()
    before, longest = wire.info(ENDED), 0
    client.sendall(b"SUBSCRIBE news\r\n")
    within_seconds(5, lambda: wire.info("pubsub_channels") == 1, "it has subscribed")
    resident = wire.info("used_memory_rss")
    lot = encode("PUBLISH", "news", "m" * 900) * 200
    for _ in range(1100):
        if wire.info(ENDED) != before:
            break
        begin = time.monotonic()
        wire.send(lot)
        for _ in range(200):
            wire.read()
        longest = max(longest, time.monotonic() - begin)
    expect(wire.info(ENDED) == before + 1, "the slow subscriber is disconnected")
    expect(longest < 5, "the publisher does not wait for it")
    expect(wire.info("used_memory_rss") < resident + 128 * MIB, "its mail is bounded")
    wire.close()
    client.close()


def crowd():
    """10,000 connections to a server that may have far fewer descriptors."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    wire, clients = Wire(port), []
    limit, served = wire.info("maxclients"), 0
    for _ in range(min(10000, most - 64)):
        clients.append(connect())
        clients[-1].sendall(b"PING\r\n")
    for client in clients:
        try:
            reply = client.recv(64)
        except OSError:  # a refused client's command came after the close
            reply = b""
        served += reply == b"+PONG\r\n"
        expect(reply in (b"", b"+PONG\r\n", b"-ERR max number of clients reached\r\n"),
               "each is served, or refused with the error")
    expect(served + 1 == min(limit, len(clients) + 1), "as many as the limit says are served")
    expect(wire.ask("PING") == b"+PONG\r\n", "a client from before is served after the crowd")
    wire.close()
    for client in clients:
        client.close()


def garbage():
    """Random bytes, with some grammar in them."""
    words = [b"*", b"$", b"\r\n", b"*3\r\n", b"$3\r\nSET\r\n", b"$-1\r\n", b"0", b"-1", b'"', b"'",
             b"\\x", b"GET ", b"SET a b ", b"EX ", b"9999999999999999999", b"PX ", b"\r", b"\n",
             b"HELLO 3\r\n", b"SUBSCRIBE a\r\n", b"$4\r\nPING\r\n"]
    draw = random.Random(1)
    for _ in range(2000):
        client = connect()
        try:
            client.sendall(b"".join(bytes([draw.randrange(256)]) if draw.random() < 0.25
                                    else draw.choice(words) for _ in range(120)))
        except OSError:
            pass
        client.close()


for case in killed, half, deaf, long, slow, crowd, garbage:
    begun = time.monotonic()
    case()
    expect_service()
    within_seconds(30, lambda: info("connected_clients") == 1, "clients that went are forgotten")
    print(f"hostile: {case.__name__}: {time.monotonic() - begun:.1f} s", flush=True)
sys.exit(failures > 0)
