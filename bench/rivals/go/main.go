// A rival of the bench: Go's time.AfterFunc. bench/rivals/rival.h has the protocol.
//
// The use chosen: one *time.Timer for each slot, as a connection keeps it, made once by AfterFunc. Cancel is Stop,
// schedule is Reset of the stopped timer, a move is Reset alone: none of them allocates. AfterFunc for each schedule
// would allocate a timer each time. The runtime keeps a heap for each processor, and runs each function in a
// goroutine of its own; both belong to the library and are part of its figures.
//
// A timer that could not be stopped may be about to run: the slot then gets a new timer.
package main

import (
	"bufio"
	"fmt"
	"math"
	"math/bits"
	"os"
	"sync/atomic"
	"time"
)

const (
	second      = int64(time.Second)
	millisecond = int64(time.Millisecond)
)

var (
	out   = bufio.NewWriter(os.Stdout)
	in    = bufio.NewReader(os.Stdin)
	start = time.Now()
)

// order is what the bench wants.
type order struct {
	workload string
	n        int
	threads  int
	ops      int64
	quick    int
}

// timer is a slot: its timer, and the lower bound of its deadline.
type timer struct {
	t        *time.Timer
	deadline int64
	slot     int
	armed    int32
}

// now is the monotonic time in nanoseconds since the start of the program.
func now() int64 { return int64(time.Since(start)) }

// draws is splitmix64, the same as bench/random.h.
type draws uint64

func (d *draws) next() uint64 {
	*d += 0x9e3779b97f4a7c15
	z := uint64(*d)
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}

func slotOf(draw uint64, below int) int { return int((draw >> 32) * uint64(below) >> 32) }

func between(draw uint64, from, to int64) int64 {
	high, _ := bits.Mul64(draw<<32, uint64(to-from))
	return from + int64(high)
}

func figure(name string, value float64) { fmt.Fprintf(out, "figure %s %g\n", name, value) }

func violation(format string, arguments ...any) {
	fmt.Fprintf(out, "violation "+format+"\n", arguments...)
}

// cpu is the CPU time of this process, as the bench reads it.
func cpu() int64 {
	var answer int64
	fmt.Fprintln(out, "cpu")
	out.Flush()
	if _, err := fmt.Fscanln(in, &answer); err != nil {
		fmt.Fprintln(os.Stderr, "the bench is gone:", err)
		os.Exit(1)
	}
	return answer
}

// pause sleeps until the moment has come, on the clock of now().
func pause(until int64) {
	for left := until - now(); left > 0; left = until - now() {
		time.Sleep(time.Duration(left))
	}
}

// arm makes the slot's timer, which runs f.
func (t *timer) arm(delay int64, f func()) { t.t = time.AfterFunc(time.Duration(delay), f) }

// checkLedger: every timer that was scheduled was cancelled, or has fired, or is pending, within five seconds. Go does
// not tell which timers are pending: at the end all are stopped, and Stop says it of each.
func checkLedger(timers []*timer, scheduled, cancelled int64) {
	var pending int64
	for _, t := range timers {
		if t.t != nil && t.t.Stop() {
			pending++
		}
	}
	for end := now() + 5*second; fired() != scheduled-cancelled-pending; pause(now() + 2*millisecond) {
		if now() >= end {
			violation("ledger: scheduled %d, cancelled %d, fired %d, pending %d", scheduled, cancelled, fired(), pending)
			return
		}
	}
}

// Callbacks run on all processors at once: they record into one of some parts, chosen by the slot.
const parts, buckets = 64, 61 * 16

type record struct {
	fired, early, latest, sum int64
	buckets                   [buckets]int64
	_                         [64]byte
}

var records [parts]record

func bucket(late int64) int {
	if late < 16 {
		return int(late)
	}
	exponent := 63 - bits.LeadingZeros64(uint64(late))
	return (exponent-3)*16 + int(late>>(exponent-4)&15)
}

// note records a run that was due at the deadline and began at the time at.
func note(slot int, deadline, at, mark int64) {
	r := &records[slot%parts]
	late := at - deadline
	if late < 0 {
		atomic.AddInt64(&r.early, 1)
	} else {
		atomic.AddInt64(&r.buckets[bucket(late)], 1)
		for latest := atomic.LoadInt64(&r.latest); late > latest; latest = atomic.LoadInt64(&r.latest) {
			atomic.CompareAndSwapInt64(&r.latest, latest, late)
		}
	}
	if mark != 0 {
		atomic.AddInt64(&r.sum, mark)
	}
	atomic.AddInt64(&r.fired, 1)
}

func fired() (sum int64) {
	for i := range records {
		sum += atomic.LoadInt64(&records[i].fired)
	}
	return
}

func reportRecords() {
	var all record
	for i := range records {
		r := &records[i]
		all.early += r.early
		if r.latest > all.latest {
			all.latest = r.latest
		}
		for b, count := range r.buckets {
			all.buckets[b] += count
		}
	}
	for b, count := range all.buckets {
		if count != 0 {
			fmt.Fprintf(out, "lateness %d %d\n", b, count)
		}
	}
	fmt.Fprintf(out, "latest %d\nearly %d\n", all.latest, all.early)
}

// clamp is for a speed that was measured to be infinite.
func clamp(ops float64) int64 { return int64(math.Min(ops, 1e12)) }

func main() {
	var o order
	if _, err := fmt.Fscanln(in, &o.workload, &o.n, &o.threads, &o.ops, &o.quick); err != nil {
		fmt.Fprintln(os.Stderr, "no order:", err)
		os.Exit(1)
	}
	switch o.workload {
	case "trial":
		trial()
	case "W1", "W2", "W3":
		load(&o)
	case "W4":
		fire(&o)
	case "W13":
		apart(&o)
	default:
		violation("unknown workload %s", o.workload)
	}
	reportRecords()
	fmt.Fprintln(out, "end")
	out.Flush()
}
