/*
 * stress_loop SECONDS [SEED]: a loop that sleeps on tw_service_fd alone, and threads that schedule
 * on its service.
 *
 * Each push is earlier than all pending timers, except timers hours away. Its thread makes the next
 * push only when the timer has run, often while the loop decides to sleep. If the loop sleeps
 * through a push, the program fails. Threads come and go, so that the loop's thread is often the
 * only one on the service.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "test/support/random.h"
#include "tickwheel.h"

enum { PUSHERS_MOST = 3, PUSHES = 300, GENERATIONS = 6, SLEPT_THROUGH_MS = 20000 };

struct pusher {
	tw_service *service;
	uint64_t seed, due_ns;
	pthread_t thread;
	atomic_uint ran;
	atomic_bool ended;
	unsigned pushed;
};

static atomic_uint_fast64_t early, refused;
static uint64_t pushes, wakeups, idle_wakeups;

static void ran(void *arg)
{
	struct pusher *p = arg;
	if (tw_service_now(p->service) < p->due_ns)
		atomic_fetch_add(&early, 1);
	atomic_fetch_add(&p->ran, 1);
}

static void never(void *arg)
{
	abort();
}

/* One of the ways to want something soon. */
static int push_once(struct pusher *p)
{
	tw_timer timer;
	uint64_t delay_ns =
	    random_percent(&p->seed, 60) ? 0 : random_below(&p->seed, 300 * TW_MICROSECOND);
	int answer;
	p->due_ns = tw_service_now(p->service) + delay_ns;
	switch (random_below(&p->seed, 4)) {
	case 0:
		return tw_schedule_at(p->service, p->due_ns, ran, p, NULL);
	case 1:
		answer = tw_schedule(p->service, 3600 * TW_SECOND, ran, p, &timer);
		return answer ? answer : tw_reset(p->service, timer, delay_ns);
	case 2:
		answer = tw_schedule(p->service, 100 * TW_SECOND + delay_ns, never, p, &timer);
		if (answer || tw_cancel(p->service, timer) != TW_CANCELLED)
			return answer ? answer : 1;
		break;
	}
	return tw_schedule(p->service, delay_ns, ran, p, NULL);
}

/* Long enough to meet the loop on its way to sleep, at any point of it. */
static void dawdle(uint64_t *seed)
{
	for (uint64_t n = random_below(seed, 3000); n > 0; n--)
		atomic_signal_fence(memory_order_seq_cst);
}

static void *push(void *arg)
{
	struct pusher *p = arg;
	for (p->pushed = 0; p->pushed < PUSHES;) {
		if (push_once(p)) {
			atomic_fetch_add(&refused, 1);
			break;
		}
		p->pushed++;
		while (atomic_load(&p->ran) != p->pushed)
			sched_yield();
		dawdle(&p->seed);
	}
	atomic_store(&p->ended, true);
	/* The loop is to notice: the last call on the service. */
	tw_schedule_at(p->service, 0, ran, p, NULL);
	return NULL;
}

static bool all_ended(struct pusher *pushers, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (!atomic_load(&pushers[i].ended) ||
		    atomic_load(&pushers[i].ran) != pushers[i].pushed + 1)
			return false;
	return true;
}

/* Until all have ended. False: it slept through something. */
static bool loop(tw_service *service, struct pusher *pushers, unsigned count, uint64_t *seed)
{
	int outer = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event = {.events = EPOLLIN};
	bool awake = epoll_ctl(outer, EPOLL_CTL_ADD, tw_service_fd(service), &event) == 0;
	while (awake && !all_ended(pushers, count)) {
		awake = epoll_wait(outer, &event, 1, SLEPT_THROUGH_MS) == 1;
		size_t budget = random_percent(seed, 50) ? TW_NO_LIMIT : 1 + random_below(seed, 3);
		wakeups++;
		idle_wakeups += tw_service_advance(service, budget) == 0;
	}
	close(outer);
	return awake;
}

static bool generation(tw_service *service, uint64_t *seed)
{
	struct pusher pushers[PUSHERS_MOST];
	unsigned count = 1 + (unsigned)random_below(seed, PUSHERS_MOST);
	for (unsigned i = 0; i < count; i++) {
		pushers[i] = (struct pusher){.service = service, .seed = random_next(seed)};
		if (pthread_create(&pushers[i].thread, NULL, push, &pushers[i]))
			abort();
	}
	if (!loop(service, pushers, count, seed))
		return false;
	for (unsigned i = 0; i < count; i++) {
		pthread_join(pushers[i].thread, NULL);
		pushes += pushers[i].pushed;
	}
	return true;
}

static bool sound(tw_service *service)
{
	char why[200] = "";
	if (tw_service_validate(service, why, sizeof why) == 0)
		return true;
	fprintf(stderr, "stress_loop: %s\n", why);
	return false;
}

static bool round_of(uint64_t *seed)
{
	struct tw_service_config cfg = {
	    .size = sizeof cfg,
	    .drive = TW_DRIVE_MANUAL,
	    .executor = tw_executor_inline(),
	    .clock = random_percent(seed, 50) ? tw_clock_boottime() : tw_clock_monotonic(),
	    .tick_ns = random_percent(seed, 70) ? 50 * TW_MICROSECOND : TW_MILLISECOND,
	};
	tw_service *service;
	if (tw_service_create(&service, &cfg) ||
	    tw_schedule(service, 7200 * TW_SECOND, never, NULL, NULL))
		abort();
	for (int i = 0; i < GENERATIONS; i++)
		if (!generation(service, seed))
			return false;
	bool good = sound(service);
	tw_service_destroy(service);
	return good;
}

int main(int argc, char **argv)
{
	uint64_t seconds = argc > 1 ? strtoull(argv[1], NULL, 10) : 20;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : tw_clock_now(tw_clock_monotonic());
	uint64_t end_ns = tw_clock_now(tw_clock_monotonic()) + seconds * TW_SECOND;
	printf("stress_loop: seed %" PRIu64 "\n", seed);
	do {
		uint64_t of_round = seed;
		if (!round_of(&seed) || early || refused) {
			fprintf(stderr,
				"stress_loop: FAILED, round's seed %" PRIu64 ": early %" PRIuFAST64
				", refused %" PRIuFAST64 ", or slept through a push\n",
				of_round, early, refused);
			return 1;
		}
	} while (tw_clock_now(tw_clock_monotonic()) < end_ns);
	printf("stress_loop: ok, %" PRIu64 " pushes, %.2f wake-ups for each, %.2f of them idle\n",
	       pushes, (double)wakeups / (double)pushes, (double)idle_wakeups / (double)wakeups);
	return 0;
}
