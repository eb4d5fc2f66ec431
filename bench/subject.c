/* What all subjects share: the list of them, memory, and the loop that drives the bare ones. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "bench/measure.h"
#include "bench/subject.h"

const struct subject *const all_subjects[] = {&subject_tickwheel,
					      &subject_tickwheel_at,
					      &subject_tickwheel_manual,
					      &subject_tickwheel_manual_at,
					      &subject_tickwheel_group,
					      &subject_heap_mutex,
					      &subject_heap_bare,
					      &subject_heap4_mutex,
					      &subject_heap4_bare,
					      &subject_wheel_bare,
#ifdef BENCH_HAS_LIBEVENT
					      &subject_libevent,
					      &subject_libevent_mt,
#endif
#ifdef BENCH_HAS_LIBEV
					      &subject_libev,
					      &subject_libev_mt,
#endif
#ifdef BENCH_HAS_LIBUV
					      &subject_libuv,
					      &subject_libuv_mt,
#endif
					      &subject_timerfd,
					      &subject_posix,
#ifdef BENCH_HAS_JAVA
					      &subject_java_stpe,
#endif
#ifdef BENCH_HAS_NETTY
					      &subject_netty,
#endif
#ifdef BENCH_HAS_GO
					      &subject_go,
#endif
#ifdef BENCH_HAS_ASIO
					      &subject_asio,
					      &subject_asio_mt,
#endif
#ifdef BENCH_HAS_GLIB
					      &subject_glib,
					      &subject_glib_mt,
#endif
#ifdef BENCH_HAS_DPDK
					      &subject_dpdk,
#endif
					      &subject_limit,
					      &subject_batch,
					      &subject_pool,
					      &subject_strand,
					      &subject_scheduler,
					      &subject_limiter,
					      &subject_semaphore,
					      &subject_ring,
					      &subject_pool_mutex,
					      NULL};

const struct subject *subject_find(const char *name)
{
	for (const struct subject *const *s = all_subjects; *s; s++)
		if (strcmp((*s)->name, name) == 0)
			return *s;
	return NULL;
}

uint32_t subject_most_slots(const struct subject *subject)
{
	return subject->most_slots ? subject->most_slots() : UINT32_MAX;
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
	struct rlimit wanted = {.rlim_cur = most, .rlim_max = most > limit.rlim_max ? most : limit.rlim_max};
	if (setrlimit(RLIMIT_NOFILE, &wanted) == 0)
		return (uint32_t)most;
	wanted = (struct rlimit){.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
	rlim_t got = setrlimit(RLIMIT_NOFILE, &wanted) == 0 ? limit.rlim_max : limit.rlim_cur;
	return (uint32_t)(got < most ? got : most);
}

/* Loops sleep in whole ticks, as those on epoll do: the fewest turns, and so the best case of a bare subject. */
static uint64_t end_of_tick_ns(uint64_t at_ns)
{
	return at_ns > UINT64_MAX - TICK_NS ? at_ns : (at_ns + TICK_NS - 1) / TICK_NS * TICK_NS;
}

uint64_t drive_until(const struct subject *subject, void *self, uint64_t end_ns)
{
	uint64_t turns = 0;
	if (subject->drive)
		return subject->drive(self, end_ns);
	if (!subject->next_turn_ns) {
		sleep_until_ns(end_ns);
		return turns;
	}
	for (;;) {
		uint64_t now = now_ns();
		subject->turn(self, 0, now);
		if (now >= end_ns)
			return turns;
		uint64_t next = end_of_tick_ns(subject->next_turn_ns(self));
		turns += next < end_ns;
		sleep_until_ns(next < end_ns ? next : end_ns);
	}
}
