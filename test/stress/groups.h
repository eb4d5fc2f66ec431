/*
 * Groups of the ledger stress: they are cancelled, waited for, closed, destroyed and made again.
 *   - when a cancel_wait has answered TW_CANCELLED, the members that it met neither run nor are
 *     released any more, and are gone;
 *   - a group that was closed with a completion has it called once, before close of the service
 *     answers, when no callback or release of a member runs and none comes: it frees memory that
 *     these touch, and may destroy the group.
 * What a cancel means for each member: record.h.
 */
#ifndef TEST_STRESS_GROUPS_H
#define TEST_STRESS_GROUPS_H

#include "test/stress/record.h"

enum { GROUPS = 8, LIVES = 20000, TABLE_SIZE = 2048 };

/* A group, from its birth on; never used again within a round. */
struct life {
	tw_group group;
	/* by members' callbacks and releases; freed by the completion, or after the round */
	_Atomic uint32_t *touched;
	atomic_int given, calls; /* of the completion */
	atomic_int inside;       /* callbacks and releases under way */
	bool destroys;           /* its completion destroys the group */
};

static struct {
	tw_service *service;
	_Atomic(struct life *) now[GROUPS];
	struct life *lives;
	atomic_size_t born;
	uint64_t completions; /* of all rounds */
} groups;

/* Timers for everybody to meddle with. */
static _Atomic(struct record *) table[TABLE_SIZE];

/* A callback or release begins or is over. */
static void touch(struct record *r, int by)
{
	struct life *life = r->life;
	if (!life)
		return;
	if (atomic_load(&life->calls))
		violation_by(r, "a callback or release after its group's completion");
	atomic_fetch_add(&life->inside, by);
	atomic_fetch_add_explicit(life->touched, 1, memory_order_relaxed);
}

static void complete(void *arg)
{
	struct life *life = arg;
	if (atomic_fetch_add(&life->calls, 1) != 0)
		violation_by(NULL, "a completion is called twice");
	if (atomic_load(&life->inside) != 0)
		violation_by(NULL, "a completion while %d callbacks or releases run",
			     atomic_load(&life->inside));
	if (life->destroys && tw_group_destroy(groups.service, life->group) != 0)
		violation_by(NULL, "a completion cannot destroy its group");
	free(life->touched);
}

/* The members that a cancel which begins now must meet, as far as the table has them. */
static size_t members_of(struct life *life, struct record **met)
{
	size_t n = 0;
	for (size_t i = 0; i < TABLE_SIZE; i++) {
		struct record *r = atomic_load(&table[i]);
		if (r && r->life == life && !atomic_load(&r->ended_with_group))
			met[n++] = r;
	}
	return n;
}

/* What was claimed before the cancel may still show: one run. */
static void note_cancelled(struct record **met, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		lower_limit(met[i], atomic_load(&met[i]->started) + 1);
		atomic_store(&met[i]->ended_with_group, true);
	}
}

static void expect_settled(struct record **met, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		expect_over(met[i], "its group was waited for");
		if (tw_cancel(met[i]->service, met[i]->timer) != TW_GONE)
			violation_by(met[i], "its group was waited for, and it is not gone");
	}
}

static void expect_answer(int answer, int other)
{
	if (answer != 0 && answer != -ENOENT && answer != other)
		violation_by(NULL, "a group call answers %d", answer);
}

/* A group with memory that its members touch. NULL: there is none to be had. */
static struct life *give_birth(void)
{
	size_t place = atomic_fetch_add(&groups.born, 1);
	struct life *life = &groups.lives[place];
	if (place >= LIVES || tw_group_create(&life->group, groups.service) != 0)
		return NULL;
	life->touched = calloc(16, sizeof(*life->touched));
	if (!life->touched)
		abort();
	return life;
}

static void close_then(struct life *life)
{
	int answer = tw_group_close(groups.service, life->group, complete, life);
	expect_answer(answer == -EALREADY || answer == -ESHUTDOWN ? 0 : answer, 0);
	if (answer == 0 && atomic_fetch_add(&life->given, 1) != 0)
		violation_by(NULL, "a second completion is accepted");
}

enum ending { DESTROY, CLOSE_AND_DESTROY, CLOSE_THEN, CLOSE_THEN_AND_DESTROY, ENDINGS };

/* Only who takes the group from its place ends it. */
static void make_again(_Atomic(struct life *) *place, struct life *life, enum ending ending)
{
	struct life *fresh = give_birth();
	if (!fresh)
		return;
	if (!atomic_compare_exchange_strong(place, &life, fresh)) {
		expect_answer(tw_group_destroy(groups.service, fresh->group), 0);
		return;
	}
	if (ending == CLOSE_AND_DESTROY)
		expect_answer(tw_group_close(groups.service, life->group, NULL, NULL), 0);
	if (ending == CLOSE_THEN)
		life->destroys = true; /* nobody else does */
	if (ending >= CLOSE_THEN)
		close_then(life);
	if (ending != CLOSE_THEN)
		expect_answer(tw_group_destroy(groups.service, life->group), 0);
}

static void meddle_with_group(uint64_t *seed, bool may_wait)
{
	static _Thread_local struct record *met[TABLE_SIZE];
	static _Thread_local bool inside; /* of releases that this very call runs */
	_Atomic(struct life *) *place = &groups.now[random_below(seed, GROUPS)];
	struct life *life = atomic_load(place);
	unsigned dice = (unsigned)random_below(seed, 100);
	if (inside || dice < 10) {
		struct tw_group_stats stats = {.size = sizeof(stats)};
		expect_answer(tw_group_stats(groups.service, life->group, &stats), 0);
		return;
	}
	if (dice < 25) {
		make_again(place, life, (enum ending)random_below(seed, ENDINGS));
		return;
	}
	inside = true;
	size_t n = members_of(life, met);
	int answer;
	if (may_wait && dice < 60) {
		answer = tw_group_cancel_wait(groups.service, life->group,
					      dice < 50 ? TW_FOREVER : random_below(seed, 100000));
		expect_answer(answer, dice < 50 ? 0 : TW_RUNNING);
		if (answer == TW_CANCELLED)
			expect_settled(met, n);
	} else {
		answer = tw_group_cancel(groups.service, life->group);
		expect_answer(answer, 0);
	}
	if (answer != -ENOENT)
		note_cancelled(met, n);
	inside = false;
}

static void groups_begin(tw_service *service)
{
	groups.service = service;
	memset(groups.lives, 0, LIVES * sizeof(struct life));
	atomic_store(&groups.born, 0);
	for (int i = 0; i < GROUPS; i++) {
		struct life *life = give_birth();
		if (!life)
			violation_by(NULL, "no group");
		atomic_store(&groups.now[i], life);
	}
}

/* The service is closed. */
static void groups_end(void)
{
	size_t born = atomic_load(&groups.born);
	for (int i = 0; i < GROUPS; i++) {
		struct tw_group_stats gauges = {.size = sizeof(gauges)};
		int answer =
		    tw_group_stats(groups.service, atomic_load(&groups.now[i])->group, &gauges);
		if (answer != -ENOENT && (answer || gauges.members || gauges.running))
			violation_by(NULL,
				     "a group has %" PRIu64 " members, %" PRIu64
				     " running, after close",
				     gauges.members, gauges.running);
	}
	for (size_t i = 0; i < born && i < LIVES; i++) {
		struct life *life = &groups.lives[i];
		if (atomic_load(&life->calls) != atomic_load(&life->given))
			violation_by(NULL, "%d completions are accepted, %d are called",
				     atomic_load(&life->given), atomic_load(&life->calls));
		groups.completions += (uint64_t)atomic_load(&life->calls);
		if (!atomic_load(&life->calls))
			free(life->touched);
	}
}

#endif
