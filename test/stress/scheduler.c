/*
 * scheduler SECONDS [SEED]: a scheduler under fire.
 *
 * Threads submit and cancel tasks, ready and delayed, that go on for several slices, and submit and
 * cancel themselves; another thread reads the statistics; the host is a pool, the
 * service's own one, the tick thread, or a thread that calls tw_scheduler_run. In the middle of it
 * the main thread closes. The done function of each accepted task is called exactly once, in
 * keeping with what cancels were answered. No two slices run at the same time, and none after its
 * task's end.
 *
 * Between the rounds schedulers are destroyed while the call that submitted or cancelled their last
 * task is returning.
 */
#include "test/stress/stress.h"

enum { POSTERS = 3, ITEMS = 2000, HOSTS = 4 };

struct item {
	atomic_ullong task; /* the handle's id */
	atomic_uint turns, told, cancelled, running_seen;
	atomic_int fate;
	atomic_bool inside, accepted;
	unsigned turns_wanted;
};

static tw_scheduler *scheduler;
static struct item items[POSTERS][ITEMS];
static atomic_bool turn_under_way, over;
static atomic_ulong tasks, turns, cancels;
static atomic_uint host_calls;

static void cancel_one(uint64_t *seed)
{
	struct item *item = &items[random_below(seed, POSTERS)][random_below(seed, ITEMS)];
	tw_scheduler_task_id task = {atomic_load(&item->task)};
	if (!task.id)
		return;
	int outcome = tw_scheduler_cancel(scheduler, task);
	if (outcome == TW_CANCELLED && atomic_fetch_add(&item->cancelled, 1))
		violation("cancelled twice", 0);
	if (outcome == TW_CANCELLED && atomic_load(&item->told) != 1)
		violation("cancelled, and not told", 0);
	if (outcome == TW_RUNNING)
		atomic_fetch_add(&item->running_seen, 1);
	if (outcome < 0)
		violation("cancel", outcome);
	atomic_fetch_add_explicit(&cancels, 1, memory_order_relaxed);
}

static void told(void *arg, enum tw_fate fate, int result)
{
	struct item *item = arg;
	if (atomic_load(&item->inside))
		violation("told while a turn of it runs", 0);
	atomic_store(&item->fate, (int)fate);
	if (atomic_fetch_add(&item->told, 1))
		violation("told twice", (long long)fate);
}

static int turn(struct tw_turn *turn, void *arg)
{
	struct item *item = arg;
	if (atomic_exchange(&turn_under_way, true))
		violation("two turns at once", 0);
	if (atomic_load(&item->told))
		violation("a turn after the end", 0);
	atomic_store(&item->inside, true);
	unsigned n = atomic_fetch_add(&item->turns, 1) + 1;
	atomic_fetch_add_explicit(&turns, 1, memory_order_relaxed);
	uint64_t seed = turn->task.id + n;
	if (random_percent(&seed, 10))
		cancel_one(&seed);
	if (random_percent(&seed, 10))
		tw_scheduler_should_yield(turn->scheduler);
	atomic_store(&item->inside, false);
	atomic_store(&turn_under_way, false);
	return n < item->turns_wanted     ? TW_TURN_AGAIN
	       : random_percent(&seed, 5) ? -EIO
					  : TW_TURN_DONE;
}

/* False: closed. */
static bool post_one(uint64_t *seed, struct item *item)
{
	static const uint64_t delays_ns[] = {0, 0, 0, 1, 100000, 3000000};
	tw_scheduler_task_id task;
	item->turns_wanted = 1 + (unsigned)random_below(seed, 3);
	const struct tw_scheduler_task post = {.size = sizeof post,
					       .fn = turn,
					       .arg = item,
					       .priority = (enum tw_priority)random_below(seed, 6),
					       .delay_ns = delays_ns[random_below(seed, 6)],
					       .done = told};
	int r = tw_scheduler_submit_task(scheduler, &post, &task);
	if (r == -ESHUTDOWN)
		return false;
	if (r)
		violation("post", r);
	atomic_store(&item->accepted, true);
	atomic_store(&item->task, task.id);
	atomic_fetch_add_explicit(&tasks, 1, memory_order_relaxed);
	return true;
}

static void post_many(unsigned number, uint64_t seed)
{
	for (int i = 0; i < ITEMS; i++) {
		if (!post_one(&seed, &items[number][i]))
			return;
		while (random_percent(&seed, 40))
			cancel_one(&seed);
	}
}

static void look(unsigned number, uint64_t seed)
{
	while (!atomic_load(&over)) {
		struct tw_scheduler_stats stats = {.size = sizeof stats};
		wanted("stats", tw_scheduler_stats(scheduler, &stats), 0);
		usleep((useconds_t)random_below(&seed, 500));
	}
}

/* A manual host: runs when it is wanted, and now and then when it is not. */
static void want(void *arg)
{
	atomic_fetch_add(&host_calls, 1);
}

static void host(unsigned number, uint64_t of_host)
{
	int r;
	unsigned seen = 0;
	for (;;) {
		while (atomic_load(&host_calls) == seen && !atomic_load(&over))
			sched_yield();
		seen = atomic_load(&host_calls);
		while ((r = tw_scheduler_run(scheduler, 50)) == TW_SCHEDULER_RUN_MORE)
			;
		if (r == -ESHUTDOWN)
			return;
		if (r < 0)
			violation("run", r);
	}
}

static void check(struct item *item)
{
	if (!atomic_load(&item->accepted))
		return;
	unsigned ran = atomic_load(&item->turns);
	int fate = atomic_load(&item->fate);
	if (atomic_load(&item->told) != 1)
		violation("ends told", atomic_load(&item->told));
	if (fate == TW_FATE_FIRED && ran != item->turns_wanted)
		violation("ran to its end in another number of turns", ran);
	if (fate != TW_FATE_FIRED && ran > item->turns_wanted)
		violation("too many turns", ran);
	if (atomic_load(&item->cancelled) && fate != TW_FATE_CANCELLED)
		violation("cancelled, and told otherwise", fate);
	if (fate == TW_FATE_CANCELLED && !atomic_load(&item->cancelled) &&
	    !atomic_load(&item->running_seen))
		violation("cancelled by nobody", 0);
}

static void check_all(bool outright)
{
	struct tw_scheduler_stats s = {.size = sizeof s};
	for (int p = 0; p < POSTERS; p++)
		for (int i = 0; i < ITEMS; i++)
			check(&items[p][i]);
	if (outright)
		return; /* it is gone */
	tw_scheduler_stats(scheduler, &s);
	if (s.submitted != s.completed + s.failed + s.cancelled + s.dropped || s.ready || s.delayed)
		violation("the ledger does not balance", (long long)s.submitted);
}

static void clear_items(void)
{
	for (int p = 0; p < POSTERS; p++)
		for (int i = 0; i < ITEMS; i++)
			items[p][i] = (struct item){.turns_wanted = 0};
}

static bool all_ended(void)
{
	struct tw_scheduler_stats s = {.size = sizeof s};
	tw_scheduler_stats(scheduler, &s);
	return s.ready + s.delayed == 0;
}

static void round_on(uint64_t *seed, tw_service *service, tw_executor *executor, bool manual)
{
	struct tw_scheduler_config cfg = {.size = sizeof cfg,
					  .host = manual ? TW_HOST_MANUAL : TW_HOST_EXECUTOR,
					  .executor = executor,
					  .slice_ns = 1 + random_below(seed, 200000),
					  .wanted = manual ? want : NULL};
	clear_items();
	atomic_store(&over, false);
	wanted("create", tw_scheduler_create(&scheduler, service, &cfg), 0);
	start_threads(POSTERS, post_many, seed);
	start_threads(1, look, seed);
	if (manual)
		start_threads(1, host, seed);
	bool quietly = random_percent(seed, 50);
	/* destroyed with tasks, timers and work still out */
	bool outright = quietly && !manual && random_percent(seed, 50);
	if (quietly) {
		join_threads(POSTERS);
		atomic_store(&over, true);
		join_threads(1);
		if (!outright)
			AWAIT(all_ended(), "tasks wait, and nobody comes");
	} else {
		usleep((useconds_t)random_below(seed, 5000));
	}
	wanted("close",
	       outright ? tw_scheduler_destroy(scheduler)
			: tw_scheduler_close(scheduler, TW_FOREVER),
	       0);
	atomic_store(&over, true);
	join_all_threads();
	check_all(outright);
	if (!outright)
		wanted("destroy", tw_scheduler_destroy(scheduler), 0);
}

/*
 * One thread posts or cancels the last task. As soon as its done function is called, the main
 * thread destroys the scheduler, while that thread is still on its way out of its call.
 */
struct last {
	tw_scheduler *scheduler;
	tw_scheduler_task_id task;
	uint64_t delay_ns;
	bool cancels;
	atomic_bool ended;
};

static int run_last(struct tw_turn *turn, void *arg)
{
	return TW_TURN_DONE;
}

static void last_ended(void *arg, enum tw_fate fate, int result)
{
	atomic_store(&((struct last *)arg)->ended, true);
}

static void post_last(struct last *last)
{
	struct tw_scheduler_task post = {.size = sizeof post,
					 .fn = run_last,
					 .arg = last,
					 .done = last_ended,
					 .delay_ns = last->delay_ns};
	int r =
	    tw_scheduler_submit_task(last->scheduler, &post, last->cancels ? &last->task : NULL);
	if (r)
		violation("the last post", r);
}

static void *use_last(void *arg)
{
	struct last *last = arg;
	if (!last->cancels)
		post_last(last);
	else if (tw_scheduler_cancel(last->scheduler, last->task) != TW_CANCELLED)
		violation("the last cancel", 0);
	return NULL;
}

static void end_on(uint64_t *seed, tw_service *service, tw_executor *executor, bool manual)
{
	struct tw_scheduler_config cfg = {.size = sizeof cfg,
					  .host = manual ? TW_HOST_MANUAL : TW_HOST_EXECUTOR,
					  .executor = executor,
					  .wanted = manual ? want : NULL};
	struct last last = {.cancels = random_percent(seed, 30)};
	pthread_t thread;
	int r = tw_scheduler_create(&last.scheduler, service, &cfg);
	if (r)
		violation("create", r);
	last.delay_ns = last.cancels ? 60 * TW_SECOND : random_below(seed, 3) * 50000;
	if (last.cancels)
		post_last(&last);
	pthread_create(&thread, NULL, use_last, &last);
	while (!atomic_load(&last.ended))
		if (!manual ||
		    tw_scheduler_run(last.scheduler, TW_NO_LIMIT) == TW_SCHEDULER_RUN_IDLE)
			sched_yield();
	wanted("the last destroy", tw_scheduler_destroy(last.scheduler), 0);
	pthread_join(thread, NULL);
}

static void round_of(uint64_t *seed)
{
	unsigned which = (unsigned)random_below(seed, HOSTS);
	tw_pool *pool = NULL;
	struct tw_pool_config pool_cfg = {.size = sizeof pool_cfg, .workers = 2};
	if (which == 1)
		wanted("pool", tw_pool_create(&pool, &pool_cfg), 0);
	tw_service *service =
	    open_service((struct tw_service_config){.tick_ns = 50000, .workers = 2});
	tw_executor *executor = which == 1   ? tw_pool_executor(pool)
				: which == 2 ? tw_executor_inline()
					     : NULL;
	for (int i = 0; i < 4; i++)
		round_on(seed, service, executor, which == 3);
	for (int i = 0; i < 20; i++)
		end_on(seed, service, executor, which == 3);
	if (tw_service_destroy(service) || tw_pool_destroy(pool))
		violation("the scheduler has kept something", 0);
}

static void report(const char *word)
{
	printf("%s %lu rounds, %lu tasks, %lu turns, %lu cancels\n", word, stress_rounds, tasks,
	       turns, cancels);
}

int main(int argc, char **argv)
{
	return stress_play(argc, argv, round_of, report);
}
