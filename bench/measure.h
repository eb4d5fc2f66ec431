/* Clocks and counters of the machine and of this process. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdint.h>
#include <time.h>

static inline uint64_t read_clock_ns(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static inline uint64_t now_ns(void)
{
	return read_clock_ns(CLOCK_MONOTONIC);
}

/*
 * CPU time of all threads of the process, those that have ended included; and of the calling
 * thread.
 */
uint64_t process_cpu_ns(void);
uint64_t thread_cpu_ns(void);

void sleep_until_ns(uint64_t at_ns);

/* Resident memory now, and its peak since the process began or the peak was forgotten. */
uint64_t resident_bytes(void);
uint64_t resident_peak_bytes(void);
void forget_resident_peak(void);

uint64_t available_memory_bytes(void);

/* How often the other threads of this process gave up the CPU of their own accord: slept. */
uint64_t other_threads_sleeps(void);

/*
 * Since boot, all CPUs together: time that was worked, and that the hypervisor gave to others; 0
 * where not told.
 */
struct cpu_use {
	uint64_t busy_ms, stolen_ms;
};
struct cpu_use machine_cpu_use(void);

/* CPU time of this process and of its children that have ended. */
uint64_t family_cpu_ms(void);

/* Units in which figures of another machine can be read. */
double clock_cost_ns(void);
double compare_and_swap_cost_ns(void);
double first_touch_cost_ns(void); /* of a page of 4 KiB */

#endif
