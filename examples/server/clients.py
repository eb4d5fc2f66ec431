"""The scripts of the demo's clients. A script yields when it goes on, or None, and is sent an event
and its time."""
import itertools
import re
from time import monotonic_ns

MS, S = 1000000, 1000000000
DUE, ANSWER, END = "due", "answer", "end"


def get(path):
    return b"GET %s HTTP/1.1\r\nHost: demo\r\n\r\n" % path


def until_end(c):
    while True:
        event, now = yield None
        if event == END:
            c.ended = now
            return


def pause(c, until):
    """True: the server has ended the connection meanwhile."""
    while True:
        event, now = yield until
        if event == END:
            c.ended = now
        if event != ANSWER:
            return event == END


def silent(c):
    yield from until_end(c)


def half_head(c):
    c.say(b"GET / HTTP/1.1\r\nHost: de")
    yield from until_end(c)


def trickle(c):
    """Counted from the connect: further bytes must not move the timeout."""
    for byte in itertools.chain(b"GET / HTTP/1.1\r\nHost: demo\r\nX: ", itertools.repeat(120)):
        c.say(bytes([byte]))
        if (yield from pause(c, monotonic_ns() + 400 * MS)):
            return


def quiet(c):
    for _ in range(c.number % 3):
        c.ask(get(b"/"))
        if (yield from pause(c, c.asked_at + 600 * MS)):
            break
    else:
        c.ask(get(b"/"))
        yield from until_end(c)
    c.since = c.heard


def overlong(c):
    c.ask(get(b"/slow?ms=8000"))
    c.since = c.asked_at
    yield from until_end(c)


def deaf(c):
    c.ask(get(b"/big?bytes=600000"))
    c.since = c.asked_at
    yield from until_end(c)


def steady(c):
    while True:
        c.ask(get(b"/"))
        if (yield from pause(c, c.asked_at + 500 * MS)):
            return


def halting(c):
    """A head in pieces. The first piece starts the server's timeout, the last one ends it."""
    pieces = re.findall(b".{1,8}", get(b"/"), re.S)
    while True:
        c.asked += 1
        c.asked_at = monotonic_ns()
        for piece in pieces[:-1]:
            c.say(piece)
            if (yield from pause(c, monotonic_ns() + 150 * MS)):
                return
        c.say(pieces[-1])
        event, now = yield None
        if event == END or c.status != 200:  # too late: the server says so, and ends
            c.ended = now
            return


def patient(c):
    while True:
        c.ask(get(b"/slow?ms=300"))
        event, now = yield None
        if event == END:
            c.ended = now
            return
        c.soonest = min(c.soonest, now - c.asked_at)
        if (yield from pause(c, now + 300 * MS)):
            return


def villain(c):
    """Three misdeeds, then knocks until the ban ends, each on a connection of its own."""
    for misdeed in range(3):
        if misdeed:
            c.connect()
        c.ask(b"GET\r\n\r\n")
        c.since = c.asked_at
        while (yield None)[0] != END:
            pass
    while True:
        c.connect()
        c.ask(get(b"/"))
        event, now = yield None
        c.disconnect()
        if event == ANSWER:
            c.ended = now
            return
        c.refusals += 1
        yield now + 20 * MS


ACTIVE = (steady, halting, patient)  # must never be cut off
