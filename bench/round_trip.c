/* A ping-pong between this process and a child, each pinned to one processor. */
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/measure.h"
#include "bench/round_trip.h"

enum { BATCHES = 24, ROUNDS = 64, WARM_UP = 64 };

/* A child that did not answer for so long was not scheduled. */
#define PATIENCE_NS UINT64_C(200000000)
#define FINISHED UINT64_MAX

typedef _Atomic uint64_t line;

/* The nth processor of a set, from 0. The set has it. */
static cpu_set_t nth_processor(const cpu_set_t *all, int n)
{
	cpu_set_t one;
	int cpu = 0;
	CPU_ZERO(&one);
	while (!CPU_ISSET(cpu, all) || n-- > 0)
		cpu++;
	CPU_SET(cpu, &one);
	return one;
}

/* The parent writes odd numbers, the child the even ones that follow them. */
static _Noreturn void answer(line *shared, const cpu_set_t *processor)
{
	uint64_t last = 0, seen;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sched_setaffinity(0, sizeof *processor, processor);
	atomic_store(shared, 2);
	while ((seen = atomic_load(shared)) != FINISHED)
		if (seen % 2 && seen != last) {
			atomic_store(shared, seen + 1);
			last = seen;
		}
	_exit(0);
}

/* False: no answer came. */
static bool play(line *shared, int rounds)
{
	for (int i = 0; i < rounds; i++) {
		uint64_t ask = atomic_load(shared) + 1, start_ns = 0;
		atomic_store(shared, ask);
		for (uint32_t looks = 1; atomic_load(shared) == ask; looks++) {
			if (looks % 65536)
				continue;
			start_ns = start_ns ? start_ns : now_ns();
			if (now_ns() - start_ns > PATIENCE_NS)
				return false;
		}
	}
	return true;
}

static double shortest_round_trip_ns(line *shared)
{
	double best = NAN;
	uint64_t start_ns = now_ns();
	while (atomic_load(shared) != 2)
		if (now_ns() - start_ns > PATIENCE_NS || sched_yield())
			return NAN;
	if (!play(shared, WARM_UP))
		return NAN;
	for (int i = 0; i < BATCHES; i++) {
		start_ns = now_ns();
		if (!play(shared, ROUNDS))
			break;
		best = fmin(best, (double)(now_ns() - start_ns) / ROUNDS);
	}
	return best;
}

double line_round_trip_ns(void)
{
	static line *shared;
	cpu_set_t all;
	if (sched_getaffinity(0, sizeof all, &all) || CPU_COUNT(&all) < 2)
		return NAN;
	if (!shared) {
		void *page =
		    mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (page == MAP_FAILED)
			return NAN;
		shared = page;
	}
	cpu_set_t here = nth_processor(&all, 0), there = nth_processor(&all, 1);
	atomic_store(shared, 0);
	pid_t child = fork();
	if (child < 0)
		return NAN;
	if (child == 0)
		answer(shared, &there);
	sched_setaffinity(0, sizeof here, &here);
	double best = shortest_round_trip_ns(shared);
	sched_setaffinity(0, sizeof all, &all);
	atomic_store(shared, FINISHED);
	kill(child, SIGKILL);
	while (waitpid(child, NULL, 0) < 0)
		;
	return best;
}
