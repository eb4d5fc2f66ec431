#!/usr/bin/env python3
"""demo.py SERVER: a server whose timeouts are tickwheel timers, under load from wrk and from
thousands of clients that are silent, slow or half-dead. It prints the server's figures once a
second and ends with a verdict, which is also the exit status.

A client that must be cut off is timed from just before the act that starts the server's timeout to
the moment when the end of its connection arrives. The server can start counting only after that
act, so "too early" needs no tolerance. How late it came is printed: the library promises two ticks
plus dispatch, and the machine, busy with all of this, adds the rest. Clients that are held up
themselves prove nothing: a control that only sleeps must not be late by half a second."""
import asyncio
import re
import resource
import signal
import subprocess
import sys
from time import monotonic

HEAD, REQUEST, IDLE = 2, 1, 3  # the server's timeouts, in seconds
LOAD_S, LAST_MOMENT_S = 12, 22
ROOT = b"GET / HTTP/1.1\r\nHost: demo\r\n\r\n"
COLUMNS = "connections requests pending moved runs wakeups".split()


def get(path):
    return ROOT.replace(b"/", path, 1)


class Client:
    def __init__(self, demo, kind, number):
        self.demo, self.kind, self.number = demo, kind, number
        self.since = self.late = None  # seconds; late: how long after its timeout it was cut off
        self.answers = self.wrong = 0
        self.writer = None

    async def connect(self):
        self.since = monotonic()
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.demo.port)

    def say(self, data):
        self.since = monotonic()
        self.writer.write(data)

    async def answer(self):
        """The next answer's status; 0: the connection has ended."""
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
            body = await self.reader.readexactly(int(re.search(rb"Length: (\d+)", head)[1]))
        except (asyncio.IncompleteReadError, ConnectionError):
            return 0
        self.body = body.decode()
        self.answers += 1
        return int(head[9:12])

    async def ask(self, request):
        """False: the server has ended the connection."""
        self.say(request)
        status = await self.answer()
        self.wrong += status != 200
        return status == 200

    async def until_cut_off(self, since=None):
        since = since or self.since
        while await self.answer():  # 408 or 503 may come before the end
            pass
        self.late = monotonic() - since - self.kind.timeout


# ---- clients that must be cut off


async def silent(c):
    await c.until_cut_off()


async def half_head(c):
    c.writer.write(ROOT[:20])
    await c.until_cut_off()


async def trickle(c):
    """Counted from the connect: further bytes must not move the timeout."""
    end = asyncio.create_task(c.until_cut_off())
    c.writer.write(ROOT[:-2] + b"X: ")
    while not (await asyncio.wait([end], timeout=0.4))[0]:
        c.writer.write(b"x")


async def quiet(c):
    for _ in range(c.number % 3):
        await c.ask(ROOT)
        await asyncio.sleep(0.6)
    await c.ask(ROOT)
    await c.until_cut_off()


async def overlong(c):
    c.say(get(b"/slow?ms=8000"))
    await c.until_cut_off()


# ---- clients that must never be cut off


async def steady(c):
    while await c.ask(ROOT):
        await asyncio.sleep(0.5)


async def halting(c):
    while True:
        for at in range(0, len(ROOT), 8):
            c.writer.write(ROOT[at:at + 8])
            await asyncio.sleep(0.15)
        if await c.answer() != 200:
            c.wrong += 1
            return


async def patient(c):
    while await c.ask(get(b"/slow?ms=300")):
        c.wrong += monotonic() - c.since < 0.3
        await asyncio.sleep(0.3)


class Kind:
    def __init__(self, script, does, count, timeout, over):
        self.script, self.does, self.count = script, does, count
        self.timeout, self.over = timeout, over  # they come within `over` seconds
        self.clients = []


class Demo:
    def __init__(self, server):
        self.kinds = [Kind(silent, "connect, say nothing", 1700, HEAD, 8),
                      Kind(half_head, "send half a head", 800, HEAD, 8),
                      Kind(trickle, "send a head byte by byte", 400, HEAD, 8),
                      Kind(quiet, "1 to 3 requests, silence", 1200, IDLE, 7),
                      Kind(overlong, "ask for 8 s of work", 500, REQUEST, 9),
                      Kind(steady, "a request each 500 ms", 200, 0, 2),
                      Kind(halting, "heads in pieces, in time", 100, 0, 2),
                      Kind(patient, "ask for 300 ms of work", 100, 0, 2)]
        options = {"head": HEAD, "request": REQUEST, "idle": IDLE}
        self.server = subprocess.Popen(
            [server] + [w for k, s in options.items() for w in (f"--{k}-ms", str(1000 * s))],
            stdout=subprocess.PIPE, text=True)
        line = self.server.stdout.readline()
        self.port = int(re.fullmatch(r"listening on 127\.0\.0\.1:(\d+)\n", line)[1])
        self.failures = self.held_up = 0

    async def control(self):
        while True:
            begin = monotonic()
            await asyncio.sleep(0.01)
            self.held_up = max(self.held_up, monotonic() - begin - 0.01)

    async def play(self, client):
        kind = client.kind
        await asyncio.sleep(kind.over * client.number / kind.count)
        await client.connect()
        await kind.script(client)

    async def figures(self):
        asks = Client(self, None, 0)
        await asks.connect()
        await asks.ask(get(b"/stats"))
        asks.writer.close()
        page = {name: int(n) for name, n in map(str.split, asks.body.splitlines())}
        return page | {"connections": page["accepted"] - page["closed"]}

    async def show_rows(self):
        for row in range(1000):
            page = await self.figures()
            if row % 20 == 0:
                print("".join(f"{name:>12}" for name in COLUMNS + ["late (p99)"]))
            print("".join(f"{page[name]:12}" for name in COLUMNS)
                  + f"{page['lateness_p99_ns'] / 1e6:9.2f} ms", flush=True)
            await asyncio.sleep(1)

    async def run(self):
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        scale = min(1, hard / 16384)
        for kind in self.kinds:
            kind.count = max(1, int(kind.count * scale))
            kind.clients = [Client(self, kind, i) for i in range(kind.count)]
        load = await asyncio.create_subprocess_exec(
            "wrk", "-t1", "-c256", f"-d{LOAD_S}s", f"http://127.0.0.1:{self.port}/",
            stdout=subprocess.PIPE)
        active = [asyncio.create_task(self.control()), asyncio.create_task(self.show_rows())]
        active += [asyncio.create_task(self.play(c)) for k in self.kinds if not k.timeout
                  for c in k.clients]
        others = [asyncio.create_task(self.play(c)) for k in self.kinds if k.timeout
                  for c in k.clients]
        await asyncio.wait(others, timeout=LAST_MOMENT_S)
        load_output = (await load.communicate())[0].decode()
        await asyncio.sleep(1)
        page = await self.figures()
        for task in active:
            task.cancel()
        await asyncio.sleep(0)
        self.server.send_signal(signal.SIGTERM)
        server_output = self.server.communicate(timeout=10)[0]
        return self.verdict(page, load_output, server_output)

    def check(self, holds, text):
        word = "PASS" if holds else "FAIL" if self.held_up < 0.5 else "busy"
        print(f"  {word}  {text}")
        self.failures += not holds

    def judge_cut_off(self, kind):
        late = sorted(1000 * c.late for c in kind.clients if c.late is not None) or [-1]
        text = (f"{kind.does:26} {len(late):5} of {kind.count:5} ended after their {kind.timeout} s"
                f" and {late[0]:.2f} .. {late[-1]:.2f} ms (median {late[len(late) // 2]:.2f})")
        self.check(len(late) == kind.count and late[0] >= 0, text)

    def verdict(self, page, load, server):
        print("\nVerdict")
        self.check(self.held_up < 0.5, f"the clients themselves were held up for "
                   f"{1000 * self.held_up:.0f} ms at most")
        for kind in self.kinds:
            if kind.timeout:
                self.judge_cut_off(kind)
                continue
            wrong = sum(c.wrong for c in kind.clients)
            self.check(wrong == 0, f"{kind.does:26} {kind.count:5} still connected, "
                       f"{sum(c.answers for c in kind.clients)} answers, {wrong} wrong")
        for name, timeout in ("head", HEAD), ("idle", IDLE), ("request", REQUEST):
            wanted = sum(k.count for k in self.kinds if k.timeout == timeout)
            self.check(page[f"timeouts_{name}"] == wanted,
                       f"{name} timeouts: {page[f'timeouts_{name}']}, {wanted} expected")
        rate = re.search(r"Requests/sec: *([\d.]+)", load)
        self.check(bool(rate) and "Socket errors" not in load and "Non-2xx" not in load,
                   f"wrk: {rate[1]} requests/s, without errors" if rate else load)
        self.check(page["rejected"] == 0 and page["full"] == 0,
                   "no timer and no connection refused")
        self.check(self.server.returncode == 0 and ": balanced" in server, server.strip())
        print("\nAll of it holds." if self.failures == 0 else "\nIT DOES NOT HOLD."
              if self.held_up < 0.5 else "\nThe machine is too busy to tell.")
        return self.failures > 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: demo.py path/to/server")
    demo = Demo(sys.argv[1])
    try:
        status = asyncio.run(demo.run())
    finally:
        demo.server.kill()
    sys.exit(status)
