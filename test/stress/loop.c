/*
 * loop SECONDS [SEED]: a loop that sleeps on tw_service_fd alone, and threads that schedule
 * on its service.
 *
 * Each push is earlier than all pending timers, except timers hours away. Its thread makes the next
 * push only when the timer has run, often while the loop decides to sleep. If the loop sleeps
 * through a push, the program fails. Threads come and go, so that the loop's thread is often the
 * only one on the service.
 */
#include <sys/epoll.h>

#include "test/stress/stress.h"

enum { PUSHERS_MOST = 3, PUSHES = 300, GENERATIONS = 6, SLEPT_THROUGH_MS = 20000 };

struct pusher {
	tw_service *service;
	uint64_t seed, due_ns;
	atomic_uint ran;
	atomic_bool ended;
	unsigned pushed;
};

static struct pusher pushers[PUSHERS_MOST];
static uint64_t pushes, wakeups, idle_wakeups;

static void ran(void *arg)
{
	struct pusher *p = arg;
	if (tw_service_now(p->service) < p->due_ns)
		violation("a run before its time", 0);
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

static void push(unsigned number, uint64_t seed)
{
	struct pusher *p = &pushers[number];
	for (p->pushed = 0; p->pushed < PUSHES;) {
		wanted("a push", push_once(p), 0);
		p->pushed++;
		while (atomic_load(&p->ran) != p->pushed)
			sched_yield();
		dawdle(&p->seed);
	}
	atomic_store(&p->ended, true);
	/* The loop is to notice: the last call on the service. */
	tw_schedule_at(p->service, 0, ran, p, NULL);
}

static bool all_ended(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (!atomic_load(&pushers[i].ended) ||
		    atomic_load(&pushers[i].ran) != pushers[i].pushed + 1)
			return false;
	return true;
}

/* Until all have ended. */
static void loop(tw_service *service, unsigned count, uint64_t *seed)
{
	int outer = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event = {.events = EPOLLIN};
	wanted("epoll_ctl", epoll_ctl(outer, EPOLL_CTL_ADD, tw_service_fd(service), &event), 0);
	while (!all_ended(count)) {
		wanted("slept through a push", epoll_wait(outer, &event, 1, SLEPT_THROUGH_MS), 1);
		size_t budget = random_percent(seed, 50) ? TW_NO_LIMIT : 1 + random_below(seed, 3);
		wakeups++;
		idle_wakeups += tw_service_advance(service, budget) == 0;
	}
	close(outer);
}

static void generation(tw_service *service, uint64_t *seed)
{
	unsigned count = 1 + (unsigned)random_below(seed, PUSHERS_MOST);
	for (unsigned i = 0; i < count; i++)
		pushers[i] = (struct pusher){.service = service, .seed = random_next(seed)};
	start_threads(count, push, seed);
	loop(service, count, seed);
	join_all_threads();
	for (unsigned i = 0; i < count; i++)
		pushes += pushers[i].pushed;
}

static void round_of(uint64_t *seed)
{
	char why[200] = "";
	tw_service *service = open_service((struct tw_service_config){
	    .drive = TW_DRIVE_MANUAL,
	    .executor = tw_executor_inline(),
	    .clock = random_percent(seed, 50) ? tw_clock_boottime() : tw_clock_monotonic(),
	    .tick_ns = random_percent(seed, 70) ? 50 * TW_MICROSECOND : TW_MILLISECOND,
	});
	wanted("a schedule", tw_schedule(service, 7200 * TW_SECOND, never, NULL, NULL), 0);
	for (int i = 0; i < GENERATIONS; i++)
		generation(service, seed);
	wanted(why, tw_service_validate(service, why, sizeof why), 0);
	tw_service_destroy(service);
}

static void report(const char *word)
{
	printf("%s %" PRIu64 " pushes, %.2f wake-ups for each, %.2f of them idle\n", word, pushes,
	       (double)wakeups / (double)pushes, (double)idle_wakeups / (double)wakeups);
}

int main(int argc, char **argv)
{
	return stress_play(argc, argv, round_of, report);
}
