/*
 * stress_batch SECONDS [SEED]: close against batches, thousands of times a second.
 *
 * Producers schedule batches of random length on whatever service there is until it refuses; the
 * main thread closes it at a random moment, in a random mode, and makes the next one. Each batch is
 * either accepted, and the release of each of its timers is called once, or refused, and no
 * callback or release of its timers is called. As stress_close, for timers that belong together.
 *
 * Some batches hold members of groups, which another thread cancels, closes, destroys and makes
 * again meanwhile: a batch that meets a group which ends is refused as a whole, or accepted and its
 * members cancelled. Some releases schedule, and so write to the lane of a thread that may be in
 * the middle of a batch; what they schedule is counted too.
 */
#define ROUNDS_PRODUCERS 3
#define ROUNDS_MOST 8000

#include "test/support/closing_rounds.h"

enum { LONGEST = 600, GROUPS = 3 };

static struct {
	_Atomic uint64_t handles[GROUPS];
	atomic_ulong ended, refused, from_releases; /* over all rounds; the last of this round */
	atomic_ulong round_done;
	uint64_t seed;
	pthread_t thread;
} groups;

static void do_nothing(void *arg)
{
	(void)arg;
}

static void count_release(void *arg, enum tw_fate fate)
{
	(void)fate;
	atomic_fetch_add((atomic_uint *)arg, 1);
}

/* Of one whose release schedules two more. */
static void schedule_in_release(void *arg, enum tw_fate fate)
{
	tw_service *s = atomic_load(&service);
	for (int i = 0; i < 2; i++)
		if (tw_schedule(s, TW_MILLISECOND, do_nothing, NULL, NULL) == 0)
			atomic_fetch_add(&groups.from_releases, 1);
	count_release(arg, fate);
}

/* ------------------------------------------------------------ groups */

static void make_groups(tw_service *s)
{
	for (int i = 0; i < GROUPS; i++) {
		tw_group group;
		if (tw_group_create(&group, s) != 0)
			violation("tw_group_create", i);
		atomic_store(&groups.handles[i], group.id);
	}
}

static void end_one(tw_service *s, uint64_t *seed)
{
	_Atomic uint64_t *place = &groups.handles[random_below(seed, GROUPS)];
	tw_group group = {atomic_load(place)}, fresh;
	unsigned dice = (unsigned)random_below(seed, 3);
	int answer = dice == 0   ? tw_group_cancel(s, group)
		     : dice == 1 ? tw_group_close(s, group)
				 : 0;
	if (answer != 0)
		violation("a group ends with", answer);
	if (dice == 0 || tw_group_create(&fresh, s) != 0)
		return;
	answer = tw_group_destroy(s, group);
	if (answer != 0)
		violation("tw_group_destroy", answer);
	atomic_store(place, fresh.id);
	atomic_fetch_add(&groups.ended, 1);
}

static void *end_groups(void *arg)
{
	(void)arg;
	for (unsigned long done = 0;;) {
		unsigned long now = atomic_load(&round_number);
		if (now == (unsigned long)-1)
			return NULL;
		if (now != done && !atomic_load(&closing))
			end_one(atomic_load(&service), &groups.seed);
		else
			atomic_store(&groups.round_done, done = now);
		if (now == done || random_percent(&groups.seed, 10))
			sched_yield();
	}
}

/* ------------------------------------------------------------ batches */

/* A tenth of the batches hold a bad task somewhere, and must leave no trace. */
static int schedule_batch(struct producer *p, tw_service *s, size_t n)
{
	struct tw_task tasks[LONGEST];
	tw_timer timers[LONGEST];
	bool members = random_percent(&p->seed, 50);
	for (size_t i = 0; i < n; i++)
		tasks[i] = (struct tw_task){
		    .size = sizeof(tasks[i]),
		    .fn = do_nothing,
		    .arg = &p->releases[p->accepted + i],
		    .when_ns = random_below(&p->seed, 3) * TW_MILLISECOND,
		    .release = random_percent(&p->seed, 5) ? schedule_in_release : count_release,
		};
	for (size_t i = 0; members && i < n; i++)
		if (random_percent(&p->seed, 70))
			tasks[i].group.id =
			    atomic_load(&groups.handles[random_below(&p->seed, GROUPS)]);
	bool bad = random_percent(&p->seed, 10);
	if (bad)
		tasks[random_below(&p->seed, n)].when_ns = UINT64_MAX;
	int answer = tw_schedule_bulk(s, tasks, n, timers);
	for (size_t i = 0; i < n && answer; i++)
		if (timers[i].id)
			violation("a refused batch tells a handle", (long long)i);
	bool ended =
	    members && (answer == -ENOENT || (answer == -ESHUTDOWN && !atomic_load(&closing)));
	if (ended)
		atomic_fetch_add(&groups.refused, 1);
	if (bad && answer != -ERANGE && answer != -ESHUTDOWN && !ended)
		violation("a bad batch answers", answer);
	return ended || (bad && answer == -ERANGE) ? 1 : answer;
}

static void schedule_until_refused(struct producer *p, tw_service *s)
{
	int answer = 0;
	p->accepted = 0;
	while (answer >= 0) {
		size_t n = 1 + random_below(&p->seed, LONGEST);
		if (p->accepted + n >= MOST)
			return;
		answer = schedule_batch(p, s, n);
		p->accepted += answer == 0 ? (unsigned)n : 0;
	}
	if (answer != -ESHUTDOWN || !atomic_load(&closing))
		violation("a batch answers", answer);
}

static void check_ledger(tw_service *s, uint64_t accepted)
{
	struct tw_service_stats stats = {.size = sizeof(stats)};
	char why[256] = "";
	tw_service_stats(s, &stats);
	if (stats.scheduled != accepted)
		violation("counted as scheduled, beyond the accepted",
			  (long long)(stats.scheduled - accepted));
	if (stats.pending != 0 || stats.fired + stats.dropped + stats.cancelled != accepted)
		violation("pending after close", (long long)stats.pending);
	if (tw_service_validate(s, why, sizeof(why)) != 0)
		violation(why, 0);
}

/* One service from create to destroy. A third of them have a tick thread. */
static uint64_t run_round(unsigned long number, uint64_t *seed)
{
	struct tw_service_config cfg = {
	    .size = sizeof(cfg), .executor = tw_executor_inline(), .max_timers = 40000};
	cfg.drive = random_percent(seed, 66) ? TW_DRIVE_MANUAL : TW_DRIVE_THREAD;
	tw_service *s;
	int answer = tw_service_create(&s, &cfg);
	if (answer != 0)
		violation("tw_service_create", answer);
	make_groups(s);
	atomic_store(&closing, false);
	atomic_store(&groups.from_releases, 0);
	begin_round(number, s);
	for (uint64_t spin = random_below(seed, random_percent(seed, 20) ? 2000000 : 40000);
	     spin > 0; spin--)
		/* lets a random moment pass */
		atomic_load_explicit(&closing, memory_order_relaxed);
	atomic_store(&closing, true);
	answer = tw_service_close(s, (enum tw_close_mode)random_below(seed, 3), TW_FOREVER);
	if (answer != 0)
		violation("tw_service_close", answer);
	uint64_t accepted = end_round(number, LONGEST);
	await_done(&groups.round_done, number);
	accepted += atomic_load(&groups.from_releases);
	check_ledger(s, accepted);
	if (tw_service_destroy(s) != 0)
		violation("tw_service_destroy", 0);
	return accepted;
}

int main(int argc, char **argv)
{
	uint64_t seed = begin_rounds("stress_batch", argc, argv), accepted;
	groups.seed = random_next(&seed);
	if (pthread_create(&groups.thread, NULL, end_groups, NULL) != 0)
		violation("no thread", 0);
	unsigned long number = play_rounds(argv, &seed, run_round, &accepted);
	pthread_join(groups.thread, NULL);
	printf("ok: %lu rounds, %" PRIu64 " timers, in batches each accepted or refused as a "
	       "whole; %lu groups ended, %lu batches with them\n",
	       number, accepted, atomic_load(&groups.ended), atomic_load(&groups.refused));
	return 0;
}
