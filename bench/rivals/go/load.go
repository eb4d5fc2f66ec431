package main

import (
	"fmt"
	"runtime"
	"sync"
	"time"
)

// W1, W2 and W3: the load of several threads, as in bench/load.c. Each thread is a goroutine on a
// thread of its own.

const (
	opsPerTurn  = 64
	chunk       = opsPerTurn * 16
	outstanding = 64
	idle        = 30 * second
)

type worker struct {
	o                             *order
	timers                        []*timer
	draws                         draws
	now                           int64
	oldest                        int
	scheduled, cancelled, started int64
	_                             [64]byte
}

// barrier lets each of n goroutines wait for all.
type barrier struct {
	lock    sync.Mutex
	reached *sync.Cond
	n, here int
	round   int
}

func newBarrier(n int) *barrier {
	b := &barrier{n: n}
	b.reached = sync.NewCond(&b.lock)
	return b
}

func (b *barrier) wait() {
	b.lock.Lock()
	defer b.lock.Unlock()
	b.here++
	if b.here == b.n {
		b.here = 0
		b.round++
		b.reached.Broadcast()
		return
	}
	for round := b.round; round == b.round; {
		b.reached.Wait()
	}
}

func (w *worker) first(i int, delay int64) {
	t := &timer{slot: i, deadline: w.now + delay}
	w.timers[i] = t
	t.arm(delay, func() { note(t.slot, t.deadline, now(), 0) })
	w.scheduled++
}

func (w *worker) cancel(i int) bool {
	stopped := w.timers[i].t.Stop()
	if stopped {
		w.cancelled++
	}
	return stopped
}

// schedule arms a timer that was stopped; one that could not be stopped is replaced.
func (w *worker) schedule(i int, delay int64, stopped bool) {
	if !stopped {
		w.first(i, delay)
		return
	}
	t := w.timers[i]
	t.deadline = w.now + delay
	t.t.Reset(time.Duration(delay))
	w.scheduled++
}

func (w *worker) fill() {
	from, to := second, 60*second
	switch w.o.workload {
	case "W2":
		to = second
	case "W3":
		from, to = idle/3, idle
	}
	for i := range w.timers {
		if i%opsPerTurn == 0 {
			w.now = now()
		}
		w.first(i, between(w.draws.next(), from, to))
	}
}

func (w *worker) churn(count int64) {
	for i := int64(0); i < count; i++ {
		if i%opsPerTurn == 0 {
			w.now = now()
		}
		draw := w.draws.next()
		slot := slotOf(draw, len(w.timers))
		w.schedule(slot, between(draw, second, 60*second), w.cancel(slot))
	}
}

func (w *worker) request(count int64) {
	for i := int64(0); i < count; i++ {
		if i%opsPerTurn == 0 {
			w.now = now()
		}
		slot := w.oldest
		w.oldest = (w.oldest + 1) % outstanding
		w.schedule(slot, second, w.cancel(slot))
	}
}

// touch: Reset moves a pending timer, and arms one that has run. None of W3 runs within its time.
func (w *worker) touch(count int64) {
	for i := int64(0); i < count; i++ {
		if i%opsPerTurn == 0 {
			w.now = now()
		}
		t := w.timers[slotOf(w.draws.next(), len(w.timers))]
		t.deadline = w.now + idle
		if !t.t.Reset(time.Duration(idle)) {
			w.scheduled++
		}
	}
}

func (w *worker) work(count int64) {
	switch w.o.workload {
	case "W1":
		w.churn(count)
	case "W2":
		w.request(count)
	default:
		w.touch(count)
	}
}

// warmUp returns the operations per nanosecond.
func (w *worker) warmUp() float64 {
	least := 100 * millisecond
	begin, done, elapsed := now(), int64(0), int64(0)
	for elapsed < least || (done < int64(len(w.timers)) && elapsed < 3*second) {
		w.work(chunk)
		done += chunk
		elapsed = now() - begin
	}
	return float64(done) / float64(elapsed)
}

func fitting(o *order, speed float64) int64 {
	target, least := 200*millisecond, 1e6/float64(o.threads)
	if o.quick != 0 {
		target, least = 100*millisecond, 0
	}
	ops := speed * float64(target)
	if ops < least {
		if 3*ops < least {
			least = 3 * ops
		}
		ops = least
	}
	return (clamp(ops)/opsPerTurn + 1) * opsPerTurn
}

func load(o *order) {
	slots := o.n
	if o.workload == "W2" {
		slots = outstanding * o.threads
	}
	if runtime.GOMAXPROCS(0) < o.threads {
		runtime.GOMAXPROCS(o.threads)
	}
	share := slots / o.threads
	workers := make([]worker, o.threads)
	timers := make([]*timer, share*o.threads) // n may be no multiple of threads
	var wall, used, before int64
	b := newBarrier(o.threads)
	var ended sync.WaitGroup
	for i := range workers {
		w := &workers[i]
		w.o, w.draws, w.timers = o, draws(i+1), timers[i*share:(i+1)*share]
		ended.Add(1)
		go func(index int) {
			defer ended.Done()
			runtime.LockOSThread()
			w.fill()
			b.wait()
			speed := w.warmUp()
			b.wait()
			if index == 0 {
				if o.ops == 0 {
					o.ops = fitting(o, speed)
				}
				runtime.GC()
				before = cpu()
			}
			b.wait()
			w.started = now()
			w.work(o.ops)
			b.wait()
			if index == 0 {
				first := w.started
				for i := range workers {
					if workers[i].started < first {
						first = workers[i].started
					}
				}
				wall, used = now()-first, cpu()-before
			}
		}(i)
	}
	ended.Wait()
	var scheduled, cancelled int64
	for i := range workers {
		scheduled += workers[i].scheduled
		cancelled += workers[i].cancelled
	}
	done := float64(o.ops) * float64(o.threads)
	fmt.Fprintf(out, "ops %d\n", o.ops)
	figure("ns_per_op", float64(wall)*float64(o.threads)/done)
	figure("cpu_ns_per_op", float64(used)/done)
	figure("ops", done)
	checkLedger(timers, scheduled, cancelled)
}
