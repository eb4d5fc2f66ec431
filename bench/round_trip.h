/* How near two processors are to each other. */
#ifndef BENCH_ROUND_TRIP_H
#define BENCH_ROUND_TRIP_H

/*
 * Nanoseconds that a cache line takes from the first processor that this process may use to the
 * second one and back: the least of several measurements, about a millisecond together. NAN: there
 * is one processor, or no process could be started. The caller may have no other thread.
 */
double line_round_trip_ns(void);

#endif
