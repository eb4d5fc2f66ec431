#!/usr/bin/env python3
"""cache.py TICKCACHE: measures tickcache and a redis-server, in turn, with the same clients: how
late `expired` events come, and what redis-benchmark finds."""
import random
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time

KEYS, HOUR_KEYS, PATIENCE_S = 20000, 500000, 3


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start(command, port):
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return process
        except OSError:
            time.sleep(0.05)
    sys.exit(f"cache: {command[0]} does not start")


def request(*words):
    parts = [str(word).encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts)


def ask(port, requests):
    """Sends them in lots, and waits for a reply of one line to each."""
    with socket.create_connection(("127.0.0.1", port)) as s:
        replies = s.makefile("rb")
        for i in range(0, len(requests), 1000):
            lot = requests[i:i + 1000]
            s.sendall(b"".join(lot))
            for _ in lot:
                if replies.readline()[:1] not in b"+:":
                    sys.exit("cache: a request was refused")


def lateness(port, hour_keys):
    """Milliseconds from each key's deadline to the arrival of its event; how many never came."""
    ask(port, [request("FLUSHALL"), request("CONFIG", "SET", "notify-keyspace-events", "Ex")])
    ask(port, [request("SET", f"hour:{i}", "v", "EX", 3600) for i in range(hour_keys)])
    due = {f"due:{i}": 0.0 for i in range(KEYS)}
    late, begin = [], time.time() + 1
    for key in due:
        due[key] = begin + random.uniform(2, 5)
    listener = socket.create_connection(("127.0.0.1", port))
    listener.sendall(request("SUBSCRIBE", "__keyevent@0__:expired"))
    listener.settimeout(0.5)

    def listen():
        rest = b""
        while len(late) < KEYS and time.time() < begin + 5 + PATIENCE_S:
            try:
                rest += listener.recv(1 << 16)
            except socket.timeout:
                continue
            now = time.time()
            found = list(re.finditer(rb"(due:\d+)\r\n", rest))
            late.extend(1000 * (now - due[m[1].decode()]) for m in found)
            rest = rest[found[-1].end():] if found else rest

    thread = threading.Thread(target=listen)
    thread.start()
    ask(port, [request("SET", key, "v", "PXAT", int(1000 * at) + 1) for key, at in due.items()])
    thread.join()
    listener.close()
    late.sort()
    return late, KEYS - len(late)


def throughput(port, pipeline):
    said = subprocess.run(
        ["redis-benchmark", "-p", str(port), "-t", "set,get", "-n", "200000", "-c", "50", "-P",
         str(pipeline), "-r", "100000", "--csv"], capture_output=True, text=True, check=True).stdout
    return {m[1]: float(m[2]) for m in re.finditer(r'"(SET|GET)","([\d.]+)"', said)}


def measure(name, command, port):
    process = start(command, port)
    try:
        for hour_keys in (0, HOUR_KEYS):
            late, missing = lateness(port, hour_keys)
            words = f"{KEYS} keys due in 2 to 5 s, {hour_keys} of an hour"
            middle, high = (f"{late[len(late) * p // 100]:.2f}" if late else "-" for p in (50, 99))
            early = sum(1 for x in late if x < 0)
            print(f"{name:10} {words}: late by {middle} ms (p50), {high} (p99); {early} early, "
                  f"{missing} not within {PATIENCE_S} s", flush=True)
        for pipeline in (1, 16):
            rates = throughput(port, pipeline)
            print(f"{name:10} redis-benchmark, pipeline {pipeline}: " + ", ".join(
                f"{test} {rate / 1000:.0f}k/s" for test, rate in rates.items()), flush=True)
    finally:
        process.terminate()
        process.wait()


def main(tickcache):
    port = free_port()
    measure("tickcache", [tickcache, "--port", str(port), "--threads", "1"], port)
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        measure("redis", ["redis-server", "--port", str(port), "--save", "", "--appendonly", "no",
                          "--bind", "127.0.0.1", "--dir", folder], port)


if __name__ == "__main__":
    main(*sys.argv[1:])
