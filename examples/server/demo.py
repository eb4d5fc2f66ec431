#!/usr/bin/env python3
"""demo.py SERVER: a server whose timeouts are tickwheel timers, under load from wrk and from
thousands of clients that are silent, slow or half-dead. It prints the server's figures once a
second and ends with a verdict, which is also the exit status.

A client that must be cut off is timed from just before the act that starts the server's timeout to
the moment when epoll reports the end of the connection. The server can start counting only after
that act, so "too early" needs no tolerance. What may be late, and why, is printed with the verdict:
the library promises two ticks plus dispatch, and all that the machine adds is measured."""
import gc
import heapq
import itertools
import multiprocessing
import os
import re
import resource
import select
import signal
import socket
import subprocess
import sys
from time import monotonic_ns, sleep

sys.dont_write_bytecode = True  # the tree stays as it is
import clients
from clients import ACTIVE, ANSWER, DUE, END, MS, S

TICK = MS  # the service's default
HEAD, REQUEST, IDLE, BAN = 2 * S, 1 * S, 3 * S, 2 * S  # the server's timeouts
LOAD_CONNECTIONS, LAST_MOMENT = 256, 22 * S
ACTS_PER_TURN = 256  # so that no end of a connection is seen late for long
IP_BIND_ADDRESS_NO_PORT = 24  # connect chooses the port, which must be free only for this one peer


def reporter(c):
    """Not one of the crowd: reads the server's own figures each second, and prints a row."""
    demo, when = c.demo, c.demo.started
    while True:
        yield when
        c.text = b""
        c.connect()
        c.ask(clients.get(b"/stats"))
        while not demo.page_is_whole(c):
            yield None
        c.disconnect()
        demo.show_row()
        when = max(when + S, monotonic_ns())


class Kind:
    def __init__(self, script, does, count, timeout, first, over):
        self.script, self.does, self.count, self.timeout = script, does, count, timeout
        self.first, self.over = first, over  # when they come, from the start
        self.clients = []


class Client:
    def __init__(self, demo, kind, number, address):
        self.demo, self.kind, self.number, self.address = demo, kind, number, address
        self.socket = self.ended = self.next = None
        self.asked = self.answered = self.status = self.refusals = 0
        self.since = self.asked_at = 0
        self.heard = 0  # when the last request that was answered was made
        self.soonest = 1 << 62
        self.text = b""
        self.script = self.start()

    def start(self):
        yield None  # until it comes
        self.since = monotonic_ns()
        self.connect()
        yield from self.kind.script(self)

    def is_deaf(self):
        return self.kind is not None and self.kind.script is clients.deaf

    def connect(self):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
        self.socket.bind((self.address, 0))
        self.socket.connect(("127.0.0.1", self.demo.port))
        self.socket.setblocking(False)
        # epoll reports a reset to a deaf client, too. That is how the server ends its connection.
        self.demo.watch(self, 0 if self.is_deaf() else select.EPOLLIN)

    def disconnect(self):
        if self.socket:
            self.demo.by_fd.pop(self.socket.fileno())
            self.socket.close()
            self.socket = None

    def say(self, data):
        try:
            self.socket.send(data, socket.MSG_NOSIGNAL)
        except OSError:
            pass  # shows as the end of the connection later

    def ask(self, request):
        self.asked += 1
        self.asked_at = monotonic_ns()
        self.say(request)

    def hear(self):
        """Answers are small: one read gets a whole answer. Which event it was; None: none."""
        try:
            data = b"" if self.is_deaf() else self.socket.recv(65536)
        except BlockingIOError:
            return None
        except OSError:
            data = b""
        if not data:
            self.disconnect()
            return END
        self.text += data if self.kind is None else b""
        if data.startswith(b"HTTP/1.1 "):
            self.answered += 1
            self.heard = self.asked_at
            self.status = int(data[9:12])
        return ANSWER


def oversleeps(pipe):
    """The control: only sleeps from tick to tick. What the machine does to it, it also does to the
    service's threads."""
    late, due = [], monotonic_ns() + TICK
    while not pipe.poll():
        sleep(max(due - monotonic_ns(), 0) / S)
        late.append(monotonic_ns() - due)
        due += (1 + max(late[-1], 0) // TICK) * TICK
    pipe.send(sorted(late))


class Demo:
    def __init__(self, server):
        self.kinds = [
            Kind(clients.silent, "connect, say nothing", 1200, HEAD, 0, 8 * S),
            Kind(clients.silent, "the same, all at once", 500, HEAD, 4 * S, 0),
            Kind(clients.half_head, "send half a head", 800, HEAD, 0, 8 * S),
            Kind(clients.trickle, "send a head byte by byte", 400, HEAD, 0, 8 * S),
            Kind(clients.quiet, "1 to 3 requests, silence", 1200, IDLE, 0, 7 * S),
            Kind(clients.overlong, "ask for 8 s of work", 500, REQUEST, 0, 9 * S),
            Kind(clients.deaf, "ask for much, never read", 60, REQUEST, 0, 9 * S),
            Kind(clients.steady, "a request each 500 ms", 300, 0, 0, 2 * S),
            Kind(clients.halting, "heads in pieces, in time", 200, 0, 0, 2 * S),
            Kind(clients.patient, "ask for 300 ms of work", 200, 0, 0, 2 * S),
            Kind(clients.villain, "misbehave, are banned", 20, BAN, 1 * S, 4 * S)]
        self.server = subprocess.Popen(
            [server, "--port", "0", "--head-ms", "2000", "--request-ms", "1000", "--idle-ms",
             "3000", "--ban-ms", "2000"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True)
        line = self.server.stdout.readline()
        found = re.search(r"listening on 127\.0\.0\.1:(\d+)", line)
        if not found:
            sys.exit(f"demo: the server does not start: {line}")
        self.port = int(found[1])
        self.epoll, self.by_fd, self.due = select.epoll(), {}, []
        self.order = itertools.count()
        self.unfinished = self.longest_turn = self.rows = 0
        self.page, self.before, self.load, self.failures = {}, None, None, 0

    # ---- the loop

    def watch(self, client, events):
        self.by_fd[client.socket.fileno()] = client
        self.epoll.register(client.socket.fileno(), events)

    def go_on(self, client, event, now):
        try:
            when = client.script.send((event, now))
        except StopIteration:
            client.script = None
            self.unfinished -= client.kind is not None and client.kind.script not in ACTIVE
            return
        client.next = when
        if when is not None:
            heapq.heappush(self.due, (when, next(self.order), client))

    def turn(self):
        wait = self.due[0][0] - monotonic_ns() if self.due else 2 * MS
        events = self.epoll.poll(min(max(wait, 0), 2 * MS) / S)
        seen = monotonic_ns()
        for fd, _ in events:
            client = self.by_fd.get(fd)
            event = client.hear() if client else None
            if event and client.script:
                self.go_on(client, event, seen)
        for _ in range(ACTS_PER_TURN):
            if not self.due or self.due[0][0] > monotonic_ns():
                break
            when, _, client = heapq.heappop(self.due)
            if client.next == when and client.script:
                self.go_on(client, DUE, monotonic_ns())
        self.longest_turn = max(self.longest_turn, monotonic_ns() - seen)

    def gather(self):
        """The crowd, fitted to the limit of descriptors."""
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        soft = min(hard, 65536) if hard != resource.RLIM_INFINITY else 65536
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        wanted = sum(kind.count for kind in self.kinds)
        for k, kind in enumerate(self.kinds):
            if wanted > soft // 2:
                kind.count = 1 + kind.count * (soft // 2) // wanted
            for i in range(kind.count):
                # A villain has an address of its own, so that a ban affects nobody else.
                own = kind.script is clients.villain
                address = f"127.0.1.{1 + i}" if own else f"127.0.0.{2 + k}"
                client = Client(self, kind, i, address)
                kind.clients.append(client)
                next(client.script)
                client.next = self.started + kind.first + kind.over * i // kind.count
                heapq.heappush(self.due, (client.next, next(self.order), client))
            self.unfinished += kind.count if kind.script not in ACTIVE else 0

    def run(self):
        self.started = monotonic_ns() + 100 * MS
        self.gather()
        print(f"server on 127.0.0.1:{self.port}; timeouts: head 2 s, request 1 s, idle 3 s, ban 2 "
              f"s\nwrk with {LOAD_CONNECTIONS} connections, and "
              f"{sum(k.count for k in self.kinds)} clients of other kinds\n", flush=True)
        ours, theirs = multiprocessing.Pipe()
        control = multiprocessing.Process(target=oversleeps, args=(theirs,), daemon=True)
        control.start()
        self.load = subprocess.Popen(
            ["wrk", "-t1", f"-c{LOAD_CONNECTIONS}", "-d12s", f"http://127.0.0.1:{self.port}/"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        asks = Client(self, None, 0, "127.0.0.1")
        asks.script = reporter(asks)
        asks.next = next(asks.script)
        heapq.heappush(self.due, (asks.next, next(self.order), asks))
        gc.disable()
        end = self.started + LAST_MOMENT
        while (self.load.poll() is None or self.unfinished) and monotonic_ns() < end:
            self.turn()
        # wrk's last connections end when it does; the server notices that a little later.
        rows = self.rows
        while self.rows < rows + 2 and monotonic_ns() < end + 5 * S:
            self.turn()
        ours.send("stop")
        late = ours.recv()
        load_output = self.load.communicate(timeout=5)[0]
        self.server.send_signal(signal.SIGTERM)
        server_output = self.server.communicate(timeout=10)[0]
        return self.verdict(late, load_output, server_output)

    # ---- the server's figures

    def page_is_whole(self, client):
        head, _, body = client.text.partition(b"\r\n\r\n")
        length = re.search(rb"Content-Length: (\d+)", head)
        if not length or len(body) < int(length[1]):
            return False
        self.page = {line.split()[0]: int(line.split()[1])
                     for line in body.decode().splitlines() if len(line.split()) == 2
                     and line.split()[1].isdigit()}
        self.page["read"] = monotonic_ns()
        return True

    def show_row(self):
        p, b = self.page, self.before or self.page
        seconds = max(p["read"] - b["read"], 1) / S
        if self.rows % 20 == 0:
            print("time  connec-  requests    timers                                           "
                  "lateness ms   wake-ups  memory\n   s    tions        /s   pending scheduled "
                  "cancelled   touched  fired   p50    p99        /s      MB")
        print(f"{(p['read'] - self.started) / S:4.1f}  {p['open']:7} "
              f"{(p['requests'] - b['requests']) / seconds:9.0f}  {p['pending']:8} "
              f"{p['scheduled']:9} {p['cancelled']:9} {p['touched']:9} {p['fired']:6} "
              f"{p['all_p50_ns'] / 1e6:5.2f} {p['all_p99_ns'] / 1e6:6.2f} "
              f"{(p['wakeups'] - b['wakeups']) / seconds:9.0f} "
              f"{p['resident_bytes'] / 1e6:7.1f}", flush=True)
        self.before = p
        self.rows += 1

    # ---- the verdict

    def check(self, holds, text):
        print(f"  {'PASS' if holds else 'FAIL'}  {text}")
        self.failures += not holds

    def bounds(self, late):
        p, most = self.page, late[-1]
        server = 2 * TICK + p["wait_max_ns"] + most
        loop = max(p["hand_back_max_ns"], p["turn_max_ns"])
        client = server + loop + p["hand_back_max_ns"] + self.longest_turn + most
        print(f"\nallowed lateness, ms: in the server {server / 1e6:.2f} = 2 ticks "
              f"{2 * TICK / 1e6:.2f} + longest wait for a worker {p['wait_max_ns'] / 1e6:.2f} + "
              f"control's longest oversleep {most / 1e6:.2f}\n"
              f"                      at a client {client / 1e6:.2f} = the same + way in "
              f"{loop / 1e6:.2f} + way back {p['hand_back_max_ns'] / 1e6:.2f} + clients' turn "
              f"{self.longest_turn / 1e6:.2f} + oversleep {most / 1e6:.2f}\n"
              f"control: {len(late)} sleeps to the next tick, late by "
              f"{late[len(late) // 2] / 1e6:.2f} ms (median), "
              f"{late[len(late) * 99 // 100] / 1e6:.2f} (p99), {most / 1e6:.2f} (longest)")
        return server, client

    def judge_cut_off(self, kind, allowed):
        late = sorted(c.ended - c.since - kind.timeout for c in kind.clients if c.ended)
        if kind.script is clients.villain:
            # It sees the end of a ban at its next knock, and each of its acts may be a turn late.
            allowed += 20 * MS + 3 * self.longest_turn
            refused = sum(c.refusals for c in kind.clients)
            self.check(all(c.refusals and c.status == 200 for c in kind.clients)
                       and refused == self.page["refused"], f"{kind.does:26} refused {refused} "
                       "times in all, then welcome")
        late = late or [-1]
        self.check(len(late) == kind.count and late[0] >= 0 and late[-1] <= allowed,
                   f"{kind.does:26} {len(late):5} of {kind.count:5} ended after their "
                   f"{kind.timeout // S} s and {late[0] / 1e6:6.2f} .. {late[-1] / 1e6:6.2f} ms "
                   f"(median {late[len(late) // 2] / 1e6:5.2f}, p99 "
                   f"{late[len(late) * 99 // 100] / 1e6:6.2f})")

    def too_slow(self, kind):
        """Active clients that a busy machine kept from being in time: the server may end these."""
        if kind.script is clients.halting:
            return sum(1 for c in kind.clients if c.ended and c.ended - c.asked_at >= HEAD)
        return sum(1 for c in kind.clients if c.ended and c.ended - c.heard >= IDLE)

    def judge_active(self, kind):
        right = [c for c in kind.clients if c.socket and c.ended is None]
        wrong = sum(c.status != 200 or c.answered + 1 < c.asked for c in right)
        soonest, slow = min(c.soonest for c in kind.clients), self.too_slow(kind)
        self.check(len(right) + slow == kind.count and wrong == 0 and soonest >= 300 * MS,
                   f"{kind.does:26} {len(right):5} of {kind.count:5} still connected, "
                   f"{sum(c.answered for c in kind.clients)} answers, {wrong} wrong"
                   + (f"; {slow} were too slow themselves: the machine is busy" if slow else ""))

    def judge_server(self, allowed):
        """It must have cut off these and no others, also not wrk's connections."""
        p = self.page
        for name, timeout in (("head", HEAD), ("idle", IDLE), ("request", REQUEST), ("ban", BAN),
                              ("answer", None)):
            wanted = sum(k.count for k in self.kinds if k.timeout == timeout
                         and (k.script is clients.villain) == (name == "ban"))
            wanted += {"head": self.too_slow(self.kinds[8]),
                       "idle": self.too_slow(self.kinds[7]) + self.too_slow(self.kinds[9])
                       }.get(name, 0)
            count, early = p[f"{name}_count"], p[f"{name}_early"]
            right = count > 0 if timeout is None else count == wanted
            self.check(right and early == 0 and p[f"{name}_max_ns"] <= allowed,
                       f"{name:8} timers: {count:5} ran"
                       f"{'' if timeout is None else f' ({wanted} expected)'}, {early} early, late "
                       f"by {p[f'{name}_p50_ns'] / 1e6:5.2f} ms (median) "
                       f"{p[f'{name}_p99_ns'] / 1e6:6.2f} (p99) {p[f'{name}_max_ns'] / 1e6:6.2f} "
                       "(longest)")

    def verdict(self, late, load, server):
        for_server, for_client = self.bounds(late)
        print("\nVerdict, from the clients' side")
        for kind in self.kinds:
            if kind.script in ACTIVE:
                self.judge_active(kind)
            else:
                self.judge_cut_off(kind, for_client)
        rate = re.search(r"Requests/sec: *([\d.]+)", load)
        self.check(bool(rate) and "Socket errors" not in load and "Non-2xx" not in load,
                   f"wrk: {rate[1] if rate else 0} requests/s, without errors" if rate else load)
        print("Verdict, from the server's side")
        self.judge_server(for_server)
        p = self.page
        active = sum(k.count - self.too_slow(k) for k in self.kinds if k.script in ACTIVE)
        self.check(p["open"] == active + 1, f"at the end {p['open']} connections were left: "
                   f"{active} active clients and the one that asked")
        self.check(p["rejected"] == 0 and p["full"] == 0, "no timer rejected, no connection turned "
                   f"away for want of room; {p['stale']} timeouts lost the race against a touch or "
                   "a cancel")
        ledger = re.search(r"ledger: .*", server)
        self.check(self.server.returncode == 0 and bool(ledger) and ": balanced" in ledger[0],
                   f"server's exit status {self.server.returncode}; "
                   f"{ledger[0] if ledger else server}")
        print("\nAll of it holds." if self.failures == 0 else "\nIT DOES NOT HOLD.")
        return 1 if self.failures else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: demo.py path/to/server")
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    show = Demo(sys.argv[1])
    try:
        status = show.run()
    finally:
        for process in (show.server, show.load):
            if process and process.poll() is None:
                process.kill()
    sys.stdout.flush()
    os._exit(status)  # thousands of sockets need no tidying
