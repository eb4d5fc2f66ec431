/* What all candidates share: the list of them, memory, and the loop that drives the bare ones. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "bench/measure.h"
#include "bench/candidate.h"

const struct candidate *const all_candidates[] = {&candidate_tickwheel,
						  &candidate_tickwheel_at,
						  &candidate_tickwheel_manual,
						  &candidate_tickwheel_group,
						  &candidate_tickwheel_named,
						  &candidate_tickwheel_persistent,
						  &candidate_heap_mutex,
						  &candidate_heap_bare,
						  &candidate_wheel_bare,
						  &candidate_wheel_mutex,
#ifdef BENCH_HAS_LIBEVENT
						  &candidate_libevent,
						  &candidate_libevent_mt,
#endif
#ifdef BENCH_HAS_LIBEV
						  &candidate_libev,
						  &candidate_libev_mt,
#endif
#ifdef BENCH_HAS_LIBUV
						  &candidate_libuv,
						  &candidate_libuv_mt,
#endif
						  &candidate_timerfd,
						  &candidate_limit,
						  &candidate_batch,
						  &candidate_pool,
						  &candidate_strand,
						  &candidate_scheduler,
						  &candidate_limiter,
						  &candidate_semaphore,
						  &candidate_ring,
						  &candidate_pool_mutex,
						  NULL};

const struct candidate *candidate_find(const char *name)
{
	for (const struct candidate *const *s = all_candidates; *s; s++)
		if (strcmp((*s)->name, name) == 0)
			return *s;
	return NULL;
}

uint32_t candidate_most_slots(const struct candidate *candidate)
{
	return candidate->most_slots ? candidate->most_slots() : UINT32_MAX;
}

void *touched_array(size_t count, size_t size)
{
	const size_t line = 64;
	size_t bytes = (count * size + line - 1) / line * line;
	void *memory = aligned_alloc(line, bytes ? bytes : line);
	if (memory)
		memset(memory, 0, bytes);
	return memory;
}

uint32_t most_descriptors(void)
{
	struct rlimit limit;
	const rlim_t most = 1000000, usual = 1024;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return (uint32_t)usual;
	struct rlimit wanted = {.rlim_cur = most,
				.rlim_max = most > limit.rlim_max ? most : limit.rlim_max};
	if (setrlimit(RLIMIT_NOFILE, &wanted) == 0)
		return (uint32_t)most;
	wanted = (struct rlimit){.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
	rlim_t got = setrlimit(RLIMIT_NOFILE, &wanted) == 0 ? limit.rlim_max : limit.rlim_cur;
	return (uint32_t)(got < most ? got : most);
}

/*
 * Loops sleep in whole ticks, as those on epoll do: the fewest turns, and so the best case of a
 * bare candidate.
 */
static uint64_t end_of_tick_ns(uint64_t at_ns)
{
	return at_ns > UINT64_MAX - TICK_NS ? at_ns : (at_ns + TICK_NS - 1) / TICK_NS * TICK_NS;
}

uint64_t drive_until(const struct candidate *candidate, void *self, uint64_t end_ns)
{
	uint64_t turns = 0;
	if (candidate->drive)
		return candidate->drive(self, end_ns);
	if (!candidate->next_turn_ns) {
		sleep_until_ns(end_ns);
		return turns;
	}
	for (;;) {
		uint64_t now = now_ns();
		candidate->turn(self, 0, now);
		if (now >= end_ns)
			return turns;
		uint64_t next = end_of_tick_ns(candidate->next_turn_ns(self));
		turns += next < end_ns;
		sleep_until_ns(next < end_ns ? next : end_ns);
	}
}
