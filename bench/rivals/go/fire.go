package main

import (
	"fmt"
	"sync/atomic"
	"time"
)

// W4, W13 and the trial, as bench/workload_fire.c, bench/workload_apart.c and bench/trial.c have them.

const window = 2 * second

func mark(slot int) int64 {
	z := (uint64(slot) + 1) * 0x9e3779b97f4a7c15
	z = (z ^ z>>32) * 0xbf58476d1ce4e5b9
	return int64(z ^ z>>29)
}

// scheduleAll arms all timers within the window that begins at first. Paced, as for all candidates.
func scheduleAll(timers []*timer, first int64, seed draws) int64 {
	begin := now()
	for i, t := range timers {
		t.deadline = first + between(seed.next(), 0, window)
		t.t.Reset(time.Duration(t.deadline - now()))
		if i%2000 == 1999 {
			pause(now() + millisecond)
		}
	}
	return now() - begin
}

func fire(o *order) {
	timers := make([]*timer, o.n+o.n/100)
	for i := range timers {
		t := &timer{slot: i}
		timers[i] = t
		t.arm(3600*second, func() { note(t.slot, t.deadline, now(), mark(t.slot)) })
		t.t.Stop()
	}
	took := scheduleAll(timers, now()+3600*second, 2)
	for _, t := range timers {
		if !t.t.Stop() {
			violation("a pending timer could not be cancelled")
		}
	}
	pause(now() + 200*millisecond)
	first := now() + 200*millisecond + 2*took
	scheduleAll(timers, first, 1)
	if now() >= first {
		violation("too slow to schedule all timers before the first is due")
	}
	var wanted, marks int64
	for i, t := range timers {
		if i%101 != 0 {
			wanted++
			marks += mark(i)
		} else if !t.t.Stop() {
			violation("a pending timer could not be cancelled")
		}
	}
	pause(first - millisecond)
	in := first - now()
	if in < 0 {
		in = 0
	}
	fmt.Fprintf(out, "window %d %d\n", in, window)
	before := cpu()
	pause(first + window)
	for end := now() + 20*second + int64(o.n)*10000; fired() < wanted && now() < end; {
		pause(now() + 2*millisecond)
	}
	figure("cpu_ns_per_op", float64(cpu()-before)/float64(wanted))
	var sum int64
	for i := range records {
		sum += atomic.LoadInt64(&records[i].sum)
	}
	if fired() != wanted {
		violation("%d of %d timers ran", fired(), wanted)
	} else if sum != marks {
		violation("as many timers ran as should, but others")
	}
}

// apart times schedule and cancel apart. The stride has no factor in common with n.
func apart(o *order) {
	w := worker{o: o, draws: 1, timers: make([]*timer, o.n), now: now()}
	for i := range w.timers {
		w.first(i, between(w.draws.next(), 30*second, 60*second))
	}
	batch := o.n / 8
	if batch < 64 {
		batch = 64
	} else if batch > 65536 {
		batch = 65536
	}
	var position int
	next := func() int { position = (position + 1000003) % o.n; return position }
	var scheduling, cancelling int64
	rounds := func(duration int64) {
		scheduling, cancelling, w.cancelled = 0, 0, 0
		for end := now() + duration; now() < end; {
			first, begin := position, now()
			for i := 0; i < batch; i++ {
				w.cancel(next())
			}
			w.now = now()
			position = first
			for i := 0; i < batch; i++ {
				w.schedule(next(), between(w.draws.next(), 30*second, 60*second), true)
			}
			cancelling += w.now - begin
			scheduling += now() - w.now
		}
	}
	rounds(200 * millisecond)
	before := cpu()
	rounds(500 * millisecond)
	used, ops := cpu()-before, float64(w.cancelled)
	figure("schedule_ns", float64(scheduling)/ops)
	figure("cancel_ns", float64(cancelling)/ops)
	figure("cpu_ns_per_op", float64(used)/ops)
	checkLedger(w.timers, int64(o.n), 0)
}

// trial looks after each timer while timers are cancelled and moved.
func trial() {
	const count, changes, rounds = 20000, 100, 150
	const shortest, longest = 50 * millisecond, 200 * millisecond
	notBefore, runs := make([]int64, count), make([]int32, count)
	timers := make([]*timer, count)
	d := draws(1)
	for i := range timers {
		t, slot := &timer{slot: i, armed: 1}, i
		timers[i] = t
		delay := between(d.next(), shortest, longest)
		notBefore[i] = now() + delay
		t.arm(delay, func() {
			at := now()
			atomic.AddInt32(&runs[slot], 1)
			note(slot, atomic.LoadInt64(&notBefore[slot]), at, 0)
		})
	}
	for round := 0; round < rounds; round++ {
		pause(now() + millisecond)
		for i := 0; i < changes; i++ {
			change(&d, timers, notBefore, longest)
		}
	}
	var wanted int64
	for _, t := range timers {
		wanted += int64(t.armed)
	}
	pause(now() + longest + 20*millisecond)
	for end := now() + 10*second; fired() < wanted && now() < end; {
		pause(now() + 2*millisecond)
	}
	for i, t := range timers {
		if ran := atomic.LoadInt32(&runs[i]); ran != t.armed {
			violation("a timer ran %d times instead of %d", ran, t.armed)
		}
	}
}

// change cancels or moves a random timer. Reset of one that has run arms it anew: its bound is not raised, for the
// earlier run may not have begun.
func change(d *draws, timers []*timer, notBefore []int64, longest int64) {
	draw := d.next()
	slot := slotOf(draw, len(timers))
	t := timers[slot]
	if draw%3 == 0 {
		if t.t.Stop() {
			t.armed--
		}
		return
	}
	delay := between(d.next(), 0, longest)
	deadline := now() + delay
	if deadline < notBefore[slot] {
		atomic.StoreInt64(&notBefore[slot], deadline)
	}
	if t.t.Reset(time.Duration(delay)) {
		atomic.StoreInt64(&notBefore[slot], deadline)
	} else {
		t.armed++
	}
}
