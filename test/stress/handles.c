/*
 * stress_handles SECONDS [SEED]: several threads use stale, foreign and random handles beside real
 * traffic (G5). Each call must answer that the timer is gone. Each timer of the traffic either runs
 * once or is cancelled by its owner.
 *
 * Only numbers that are wrong for good are tried. A handle with a chosen generation could become
 * right later.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "test/support/random.h"
#include "tickwheel.h"

enum { OWNERS = 2, LOADERS = 2, WINDOW = 512, STALE = 4096 };

struct owned {
	tw_timer timer;
	atomic_uint runs;
};

static uint64_t first_seed;
static tw_service *service, *stranger;
static atomic_bool stop;
static atomic_ullong scheduled, cancelled, ran, tried;
static _Atomic uint64_t stale[STALE];

static _Noreturn void violation(const char *what, uint64_t id, long long answer)
{
	fflush(stdout);
	fprintf(stderr, "VIOLATION (seed %" PRIu64 "): %s: handle %#" PRIx64 ", answer %lld\n",
		first_seed, what, id, answer);
	_exit(1);
}

/* ------------------------------------------------------------ traffic */

static void run(void *arg)
{
	struct owned *owned = arg;
	atomic_fetch_add(&owned->runs, 1);
	atomic_fetch_add_explicit(&ran, 1, memory_order_relaxed);
}

/* Ends the timer one way or the other, and makes sure that it had one fate. */
static void end_owned(struct owned *owned, uint64_t *seed)
{
	int answer = tw_cancel_wait(service, owned->timer, TW_FOREVER);
	unsigned runs = atomic_load(&owned->runs);
	if (answer != TW_CANCELLED && answer != TW_GONE && answer != TW_FINISHED)
		violation("an owner's cancel", owned->timer.id, answer);
	if (runs != (answer != TW_CANCELLED))
		violation("a timer suffered: its runs", owned->timer.id, runs);
	if (answer == TW_CANCELLED)
		atomic_fetch_add_explicit(&cancelled, 1, memory_order_relaxed);
	atomic_store(&stale[random_below(seed, STALE)], owned->timer.id);
}

/*
 * Until the lane has room: the tick thread, which drains it, may have had no processor for a while.
 */
static int schedule(struct owned *owned, uint64_t delay_ns)
{
	uint64_t until_ns = tw_service_now(service) + 60 * TW_SECOND;
	int answer;
	while ((answer = tw_schedule(service, delay_ns, run, owned, &owned->timer)) == -EAGAIN &&
	       tw_service_now(service) < until_ns)
		sched_yield();
	return answer;
}

static void *own(void *arg)
{
	uint64_t seed = *(uint64_t *)arg;
	static struct owned windows[OWNERS][WINDOW];
	static atomic_uint next_window;
	struct owned *window = windows[atomic_fetch_add(&next_window, 1)];
	for (size_t i = 0; !atomic_load(&stop); i++) {
		struct owned *owned = &window[i % WINDOW];
		if (i >= WINDOW)
			end_owned(owned, &seed);
		atomic_store(&owned->runs, 0);
		int answer = schedule(owned, random_below(&seed, TW_MILLISECOND));
		if (answer != 0)
			violation("a schedule", owned->timer.id, answer);
		atomic_fetch_add_explicit(&scheduled, 1, memory_order_relaxed);
	}
	for (size_t i = 0; i < WINDOW; i++)
		if (window[i].timer.id)
			end_owned(&window[i], &seed);
	return NULL;
}

/* ------------------------------------------------------------ load --- */

static void expect_gone(tw_timer timer, uint64_t *seed)
{
	uint64_t left_ns;
	long long answer, wanted = -ENOENT;
	switch (random_below(seed, 7)) {
	case 0:
		answer = tw_cancel(service, timer);
		wanted = TW_GONE;
		break;
	case 1:
		answer = tw_cancel_wait(service, timer, TW_FOREVER);
		wanted = TW_GONE;
		break;
	case 2:
		answer = tw_reset(service, timer, random_below(seed, 10 * TW_SECOND));
		break;
	case 3:
		answer = tw_reset_at(service, timer, random_below(seed, 10 * TW_SECOND));
		break;
	case 4:
		answer = tw_reset_earlier_at(
		    service, timer, tw_service_now(service) + random_below(seed, 10 * TW_SECOND));
		break;
	case 5:
		answer = tw_remaining(service, timer, &left_ns);
		break;
	default:
		answer = tw_is_pending(service, timer);
		wanted = false;
		break;
	}
	if (answer != wanted)
		violation("a handle that is gone", timer.id, answer);
	atomic_fetch_add_explicit(&tried, 1, memory_order_relaxed);
}

static void *load(void *arg)
{
	uint64_t seed = *(uint64_t *)arg;
	while (!atomic_load(&stop)) {
		expect_gone((tw_timer){random_next(&seed)}, &seed);
		for (int i = 0; i < 8; i++)
			expect_gone((tw_timer){atomic_load(&stale[random_below(&seed, STALE)])},
				    &seed);
	}
	return NULL;
}

/* ------------------------------------------------------------ main */

/* Handles of another service, live there for the whole time, serve as stale ones here. */
static void fill_with_foreign_handles(void)
{
	static struct owned nobody;
	for (size_t i = 0; i < STALE; i++) {
		tw_timer timer;
		int answer = tw_schedule(stranger, 3600 * TW_SECOND, run, &nobody, &timer);
		if (answer != 0)
			violation("a schedule on the other service", 0, answer);
		atomic_store(&stale[i], timer.id);
	}
}

static void check_ledger(void)
{
	struct tw_service_stats stats = {.size = sizeof(stats)};
	char why[256] = "";
	tw_service_stats(service, &stats);
	if (stats.scheduled != scheduled || stats.cancelled != cancelled || stats.fired != ran ||
	    stats.pending != 0 || scheduled != cancelled + ran) {
		tw_service_stats_print(&stats, stderr);
		violation("the ledger does not balance", 0, (long long)scheduled);
	}
	if (tw_service_validate(service, why, sizeof(why)) != 0)
		violation(why, 0, 0);
}

static void open_services(void)
{
	struct tw_service_config cfg = {.size = sizeof(cfg), .workers = 2, .max_timers = 20000};
	if (tw_service_create(&service, &cfg) != 0 || tw_service_create(&stranger, &cfg) != 0)
		violation("no service", 0, 0);
	fill_with_foreign_handles();
}

static void report(const char *word)
{
	printf("%s %llu timers: %llu ran, %llu cancelled; %llu wrong handles tried\n", word,
	       atomic_load(&scheduled), atomic_load(&ran), atomic_load(&cancelled),
	       atomic_load(&tried));
	fflush(stdout);
}

static void let_pass(double seconds)
{
	for (; seconds > 0; seconds--) {
		double part = seconds < 1 ? seconds : 1;
		const struct timespec span = {.tv_sec = part >= 1,
					      .tv_nsec = part >= 1 ? 0 : (long)(part * 1e9)};
		nanosleep(&span, NULL);
		report("  ...");
	}
}

int main(int argc, char **argv)
{
	if (argc < 2 || argc > 3 || atof(argv[1]) <= 0) {
		fprintf(stderr, "usage: stress_handles SECONDS [SEED]\n");
		return 2;
	}
	first_seed = argc == 3 ? strtoull(argv[2], NULL, 0) : tw_clock_now(tw_clock_monotonic());
	printf("stress_handles: seed %" PRIu64 "\n", first_seed);
	open_services();
	pthread_t threads[OWNERS + LOADERS];
	uint64_t seeds[OWNERS + LOADERS], seed = first_seed;
	for (int i = 0; i < OWNERS + LOADERS; i++) {
		seeds[i] = random_next(&seed);
		if (pthread_create(&threads[i], NULL, i < OWNERS ? own : load, &seeds[i]) != 0)
			violation("no thread", 0, 0);
	}
	let_pass(atof(argv[1]));
	atomic_store(&stop, true);
	for (int i = 0; i < OWNERS + LOADERS; i++)
		pthread_join(threads[i], NULL);
	if (tw_service_close(service, TW_CLOSE_DROP, TW_FOREVER) != 0)
		violation("a close", 0, 0);
	check_ledger();
	tw_service_destroy(service);
	tw_service_destroy(stranger);
	report("ok:");
	return 0;
}
