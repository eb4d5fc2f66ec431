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
#include "test/stress/foreign.h"
#include "test/stress/groups.h"

enum { THREADS = 4 };

static void produce(unsigned number, uint64_t seed)
{
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
}

static void open_all(struct drawn *drawn, uint64_t *seed)
{
	struct tw_service_config cfg = {.tick_ns = random_percent(seed, 50) ? 0 : 100000};
	shared.service = drawn_open(drawn, cfg, seed);
	shared.inline_callbacks = drawn->is_inline;
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
	total->scheduled += sum.scheduled;
	total->cancelled += stats.cancelled;
	total->runs += sum.runs;
}

static struct account total;

static void round_of(uint64_t *seed_of_all)
{
	uint64_t seed = random_next(seed_of_all);
	struct drawn drawn;
	memset(shared.members, 0, RECORDS * sizeof(struct member));
	memset(shared.lives, 0, LIVES * sizeof(struct life));
	atomic_store(&shared.born, 0);
	atomic_store(&shared.used, 0);
	atomic_store(&shared.stop, false);
	atomic_store(&round_now.rejected, 0);
	open_all(&drawn, &seed);
	start_threads(THREADS, produce, &seed);
	stress_sleep(random_below(&seed, 300 * TW_MILLISECOND));
	enum tw_close_mode mode = (enum tw_close_mode)random_below(&seed, 3);
	drawn_close(&drawn, mode, mode == TW_CLOSE_DRAIN ? TW_MILLISECOND : TW_FOREVER);
	atomic_store(&shared.stop, true);
	join_all_threads();
	check_all(&total);
	check_lives();
	drawn_end(&drawn);
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
