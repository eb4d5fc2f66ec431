/*
 * handles SECONDS [SEED]: several threads use stale, foreign and random handles beside real
 * traffic (G5). Each call must answer that the timer is gone. Each timer of the traffic either runs
 * once or is cancelled by its owner.
 *
 * Only numbers that are wrong for good are tried. A handle with a chosen generation could become
 * right later.
 */
#include "test/stress/stress.h"

enum { OWNERS = 2, LOADERS = 2, WINDOW = 512, STALE = 4096 };

struct owned {
	tw_timer timer;
	atomic_uint runs;
};

static tw_service *service, *stranger;
static atomic_ullong scheduled, cancelled, ran, tried;
static _Atomic uint64_t stale[STALE];

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
		violation_of("an owner's cancel", owned->timer.id, answer);
	if (runs != (answer != TW_CANCELLED))
		violation_of("a timer suffered: its runs", owned->timer.id, runs);
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

static void own(unsigned number, uint64_t seed)
{
	static struct owned windows[OWNERS][WINDOW];
	struct owned *window = windows[number];
	memset(windows[number], 0, sizeof windows[number]);
	for (size_t i = 0; !atomic_load(&stress_stop); i++) {
		struct owned *owned = &window[i % WINDOW];
		if (i >= WINDOW)
			end_owned(owned, &seed);
		atomic_store(&owned->runs, 0);
		int answer = schedule(owned, random_below(&seed, TW_MILLISECOND));
		if (answer != 0)
			violation_of("a schedule", owned->timer.id, answer);
		atomic_fetch_add_explicit(&scheduled, 1, memory_order_relaxed);
	}
	for (size_t i = 0; i < WINDOW; i++)
		if (window[i].timer.id)
			end_owned(&window[i], &seed);
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
		violation_of("a handle that is gone", timer.id, answer);
	atomic_fetch_add_explicit(&tried, 1, memory_order_relaxed);
}

static void load(unsigned number, uint64_t seed)
{
	while (!atomic_load(&stress_stop)) {
		expect_gone((tw_timer){random_next(&seed)}, &seed);
		for (int i = 0; i < 8; i++)
			expect_gone((tw_timer){atomic_load(&stale[random_below(&seed, STALE)])},
				    &seed);
	}
}

/* ------------------------------------------------------------ main */

/* Handles of another service, live there for the whole time, serve as stale ones here. */
static void fill_with_foreign_handles(void)
{
	static struct owned nobody;
	for (size_t i = 0; i < STALE; i++) {
		tw_timer timer;
		wanted("a schedule on the other service",
		       tw_schedule(stranger, 3600 * TW_SECOND, run, &nobody, &timer), 0);
		atomic_store(&stale[i], timer.id);
	}
}

static void round_of(uint64_t *seed)
{
	const struct tw_service_config config = {.workers = 2, .max_timers = 20000};
	service = open_service(config);
	stranger = open_service(config);
	fill_with_foreign_handles();
	start_threads(OWNERS, own, seed);
	start_threads(LOADERS, load, seed);
	watch_threads(NULL);
	close_service(service);
	wanted("runs", (long long)ran, (long long)(scheduled - cancelled));
	end_service(service,
		    (struct stress_ledger){
			.scheduled = scheduled, .fired = ran, .cancelled = cancelled, .runs = ran});
	wanted("destroy", tw_service_destroy(stranger), 0);
}

static void report(const char *word)
{
	printf("%s %llu timers: %llu ran, %llu cancelled; %llu wrong handles tried\n", word,
	       scheduled, ran, cancelled, tried);
}

int main(int argc, char **argv)
{
	return stress_play(argc, argv, round_of, report);
}
