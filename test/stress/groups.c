/*
 * groups SECONDS [SEED]: groups under stress.
 *
 * Threads schedule members of a few groups, cancel, move and wait for them, while they cancel, wait
 * for, close, destroy and make again the groups themselves, until the service is closed at a random
 * moment. The rules:
 *   - once a group's cancel has returned, no call on its members answers TW_CANCELLED or moves one,
 *     at most one claimed run still follows, and after TW_GONE or -ENOENT none;
 *   - when its cancel_wait has returned TW_CANCELLED, the members it met neither run nor are
 *     released any more;
 *   - a group that was closed with a completion has it called exactly once, before close of the
 *     service answers, when no callback or release of a member runs and none comes; it frees memory
 *     that the members touch, and may destroy the group;
 *   - each accepted member is released exactly once, after its last run; runs do not overlap; the
 *     ledger balances.
 */
#include <pthread.h>
#include "test/stress/foreign.h"
#include "test/stress/groups.h"

enum { THREADS = 4 };

static void *produce(void *arg)
{
	uint64_t seed = (uintptr_t)arg;
	while (!atomic_load(&shared.stop)) {
		unsigned dice = (unsigned)random_below(&seed, 1000);
		if (dice < 500)
			schedule(&seed);
		else if (dice < 970)
			meddle(&seed);
		else if (dice < 990)
			meddle_with_group(&seed, true);
		else
			/* it may go to sleep */
			stress_sleep(random_below(&seed, dice < 999 ? 300000 : 10000000));
		atomic_fetch_add_explicit(&round_now.operations, 1, memory_order_relaxed);
	}
	return NULL;
}

static void *drive(void *arg)
{
	int answer = 0;
	while (answer >= 0 || answer == -EBUSY) {
		answer = tw_service_advance(arg, TW_NO_LIMIT);
		stress_sleep(200000);
	}
	return NULL;
}

static void open_drawn(struct foreign *foreign, uint64_t *seed, bool *by_hand, bool *is_foreign)
{
	struct tw_service_config cfg = {.size = sizeof(cfg),
					.tick_ns = random_percent(seed, 50) ? 0 : 100000};
	unsigned executor = (unsigned)random_below(seed, 4);
	*by_hand = random_percent(seed, 20);
	*is_foreign = executor == 1;
	cfg.drive = *by_hand ? TW_DRIVE_MANUAL : TW_DRIVE_THREAD;
	shared.inline_callbacks = executor == 0;
	if (executor == 0) {
		cfg.executor = tw_executor_inline();
	} else if (*is_foreign) {
		foreign_start(foreign, random_next(seed),
			      1 + (unsigned)random_below(seed, FOREIGN_THREADS_MOST));
		foreign->refuse_percent = random_percent(seed, 50) ? 20 : 0;
		foreign->give_back_percent = random_percent(seed, 50) ? 5 : 0;
		cfg.executor = &foreign->base;
	} else {
		cfg.workers = 1 + (uint32_t)random_below(seed, 3);
	}
	if (tw_service_create(&shared.service, &cfg) != 0)
		violation_by(NULL, "no service");
	for (int i = 0; i < GROUPS; i++) {
		struct life *life = give_birth();
		if (!life)
			violation_by(NULL, "no group");
		atomic_store(&shared.groups[i], life);
	}
}

static void check_member(struct member *m, struct account *sum)
{
	struct record *r = &m->record;
	unsigned releases = atomic_load(&r->releases), ran = atomic_load(&r->started);
	if (!atomic_load(&r->accepted)) {
		if (ran || releases)
			violation_by(r, "a refused member lives");
		return;
	}
	sum->scheduled++;
	sum->runs += ran;
	if (atomic_load(&r->inside) || releases != r->has_release)
		violation_by(r, "not at its end");
	if (r->has_release && atomic_load(&r->fate) == TW_FATE_CANCELLED)
		sum->cancelled++;
	if (r->kind == ONE_SHOT && r->has_release &&
	    ran == (atomic_load(&r->fate) != TW_FATE_FIRED))
		violation_by(r, "a one-shot with another fate than it was told");
	if (atomic_load(&m->running_told) && !r->has_release && !ran)
		violation_by(
		    r, "told TW_RUNNING after its group's cancel, and nothing of it ever ran");
}

static uint64_t round_completions;

static void check_lives(void)
{
	size_t born = atomic_load(&shared.born);
	for (size_t i = 0; i < born && i < LIVES; i++) {
		struct life *life = &shared.lives[i];
		if (atomic_load(&life->calls) != atomic_load(&life->given))
			violation_by(NULL, "%d completions are accepted, %d are called",
				     atomic_load(&life->given), atomic_load(&life->calls));
		round_completions += (uint64_t)atomic_load(&life->calls);
		if (!atomic_load(&life->calls))
			free(life->touched);
	}
}

static void check_all(struct account *total)
{
	struct account sum = {0};
	size_t used = atomic_load(&shared.used);
	for (size_t i = 0; i < used && i < RECORDS; i++)
		check_member(&shared.members[i], &sum);
	struct tw_service_stats stats = {.size = sizeof(stats)};
	tw_service_stats(shared.service, &stats);
	if (stats.scheduled != sum.scheduled || stats.pending || stats.runs != sum.runs ||
	    stats.fired + stats.cancelled + stats.dropped != sum.scheduled ||
	    stats.cancelled < sum.cancelled || stats.rejected != atomic_load(&round_now.rejected))
		violation_by(NULL, "the ledger does not balance");
	for (int i = 0; i < GROUPS; i++) {
		struct tw_group_stats gauges = {.size = sizeof(gauges)};
		int answer =
		    tw_group_stats(shared.service, atomic_load(&shared.groups[i])->group, &gauges);
		if (answer != -ENOENT && (answer || gauges.members || gauges.running))
			violation_by(NULL,
				     "a group has %" PRIu64 " members, %" PRIu64
				     " running, after close",
				     gauges.members, gauges.running);
	}
	char why[256] = "";
	if (tw_service_validate(shared.service, why, sizeof(why)) != 0)
		violation_by(NULL, "tw_service_validate: %s", why);
	total->scheduled += sum.scheduled;
	total->cancelled += stats.cancelled;
	total->runs += sum.runs;
}

static struct account total;

static void round_of(uint64_t *seed_of_all)
{
	uint64_t seed = random_next(seed_of_all);
	struct foreign foreign;
	bool by_hand, is_foreign;
	pthread_t threads[THREADS], driver;
	memset(shared.members, 0, RECORDS * sizeof(struct member));
	memset(shared.lives, 0, LIVES * sizeof(struct life));
	atomic_store(&shared.born, 0);
	atomic_store(&shared.used, 0);
	atomic_store(&shared.stop, false);
	atomic_store(&round_now.rejected, 0);
	open_drawn(&foreign, &seed, &by_hand, &is_foreign);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, produce,
				   (void *)(uintptr_t)random_next(&seed)))
			abort();
	if (by_hand && pthread_create(&driver, NULL, drive, shared.service))
		abort();
	stress_sleep(random_below(&seed, 300 * TW_MILLISECOND));
	enum tw_close_mode mode = (enum tw_close_mode)random_below(&seed, 3);
	int answer = tw_service_close(shared.service, mode,
				      mode == TW_CLOSE_DRAIN ? TW_MILLISECOND : TW_FOREVER);
	/*
	 * A drain gives callbacks a second: less than this process may have to wait for a
	 * processor.
	 */
	if (answer == -ETIMEDOUT && mode == TW_CLOSE_DRAIN)
		answer = tw_service_close(shared.service, TW_CLOSE_DROP, TW_FOREVER);
	if (answer != 0)
		violation_by(NULL, "close answers %d", answer);
	atomic_store(&shared.stop, true);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	if (by_hand)
		pthread_join(driver, NULL);
	check_all(&total);
	check_lives();
	if (tw_service_destroy(shared.service) != 0)
		violation_by(NULL, "tw_service_destroy fails");
	if (is_foreign)
		foreign_stop(&foreign);
}

static void report(const char *word)
{
	printf("%s %lu rounds, %llu operations: %" PRIu64 " timers, %" PRIu64 " runs, %" PRIu64
	       " cancelled, %" PRIu64 " completions\n",
	       word, stress_rounds, round_now.operations, total.scheduled, total.runs,
	       total.cancelled, round_completions);
}

int main(int argc, char **argv)
{
	shared.members = calloc(RECORDS, sizeof(struct member));
	shared.lives = calloc(LIVES, sizeof(struct life));
	if (!shared.members || !shared.lives)
		abort();
	return stress_play(argc, argv, round_of, report);
}
