/*
 * What the groups stress does to groups and their members: members are scheduled, cancelled,
 * moved and waited for; groups are cancelled, closed, destroyed and made again. groups.c has the
 * rules and the rounds.
 */
#ifndef TEST_STRESS_GROUPS_H
#define TEST_STRESS_GROUPS_H

#pragma GCC diagnostic ignored "-Wunused-function" /* not all of the ledger's rules are used */
#include "test/stress/record.h"

enum { GROUPS = 5, RECORDS = 20000, MET_MOST = 4000, LIVES = 20000 };

/* A group, from its birth on; never used again within a round. */
struct life {
	tw_group group;
	/* by members' callbacks and releases; freed by the completion, or after the round */
	_Atomic uint32_t *touched;
	atomic_int given, calls; /* of the completion */
	atomic_int inside;       /* callbacks and releases under way */
	bool destroys;           /* its completion destroys the group */
};

struct member {
	/* of it: service, timer, accepted, started, inside, releases, fate, ended, limit */
	struct record record;
	tw_group group;
	struct life *life;
	atomic_bool cancelled_with_group; /* such a cancel has returned */
	atomic_bool running_told;         /* after that, to a cancel */
};

static struct {
	tw_service *service;
	_Atomic(struct life *) groups[GROUPS];
	struct life *lives;
	atomic_size_t born;
	struct member *members;
	atomic_size_t used;
	atomic_bool stop;
	bool inline_callbacks;
} shared;

/* Sometimes so long that only a cancel can end it. */
static uint64_t random_span(uint64_t *seed)
{
	return random_below(seed, random_percent(seed, 20) ? 1000 * TW_SECOND : 2 * TW_MILLISECOND);
}

/* ------------------------------------------------------------ callbacks */

static void meddle_with_group(uint64_t *seed, bool may_wait);

/* A callback or release begins or is over. */
static void touch(struct member *m, int by)
{
	struct life *life = m->life;
	if (atomic_load(&life->calls))
		violation_by(&m->record, "a callback or release after its group's completion");
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
	if (life->destroys && tw_group_destroy(shared.service, life->group) != 0)
		violation_by(NULL, "a completion cannot destroy its group");
	free(life->touched);
}

static void fire(void *arg)
{
	struct member *m = arg;
	struct record *r = &m->record;
	touch(m, 1);
	if (atomic_load(&r->ended))
		violation_by(r, "a run after the member's end");
	if (atomic_fetch_add(&r->started, 1) + 1 > atomic_load(&r->limit))
		violation_by(r, "a further run after its group was cancelled");
	if (atomic_fetch_add(&r->inside, 1) != 0)
		violation_by(r, "two runs of one member overlap");
	uint64_t seed = r->seed + ++r->runs;
	if (random_percent(&seed, 2))
		stress_sleep(random_below(&seed, shared.inline_callbacks ? 100000 : 1000000));
	if (random_percent(&seed, 2))
		meddle_with_group(&seed, false);
	if (r->kind == RE_ARMING && r->runs < r->runs_wanted) {
		int answer = tw_reset(r->service, r->timer, random_span(&seed));
		if (answer && answer != -ESHUTDOWN && answer != -ECANCELED)
			violation_by(r, "a re-arm answers %d", answer);
	}
	atomic_fetch_sub(&r->inside, 1);
	touch(m, -1);
}

static void released(void *arg, enum tw_fate fate)
{
	struct member *m = arg;
	struct record *r = &m->record;
	touch(m, 1);
	if (atomic_load(&r->inside) != 0)
		violation_by(r, "released while its callback runs");
	atomic_store(&r->ended, true);
	atomic_store(&r->fate, fate);
	uint64_t seed = r->seed;
	if (random_percent(&seed, 2))
		meddle_with_group(&seed, false);
	if (atomic_fetch_add(&r->releases, 1) != 0)
		violation_by(r, "a second release");
	touch(m, -1);
}

/* ------------------------------------------------------------ members */

static void schedule(uint64_t *seed)
{
	size_t place = atomic_fetch_add(&shared.used, 1);
	if (place >= RECORDS)
		return;
	struct member *m = &shared.members[place];
	struct record *r = &m->record;
	enum record_kind kind =
	    random_percent(seed, 50) ? ONE_SHOT : (enum record_kind)(1 + random_below(seed, 3));
	record_prepare(r, shared.service, kind, random_percent(seed, 70));
	r->seed = random_next(seed);
	r->runs_wanted = kind == ONE_SHOT ? 1 : UINT32_MAX;
	m->life = atomic_load(&shared.groups[random_below(seed, GROUPS)]);
	m->group = m->life->group;
	struct tw_period period = {.size = sizeof(period),
				   .first_ns = random_below(seed, 3 * TW_MILLISECOND),
				   .period_ns = 1 + random_span(seed),
				   .mode = kind == FIXED_RATE ? TW_FIXED_RATE : TW_FIXED_DELAY};
	bool series = kind == FIXED_RATE || kind == FIXED_DELAY;
	struct tw_task task = {.size = sizeof(task),
			       .fn = fire,
			       .arg = m,
			       .when_ns = series ? 0
						 : random_below(seed, random_percent(seed, 50)
									  ? 3 * TW_MILLISECOND
									  : TW_SECOND),
			       .period = series ? &period : NULL,
			       .release = r->has_release ? released : NULL,
			       .group = m->group};
	int answer = tw_schedule_task(shared.service, &task, &r->timer);
	if (answer == 0)
		atomic_store(&r->accepted, true);
	else if (answer != -ESHUTDOWN && answer != -ENOENT && answer != -EAGAIN)
		violation_by(r, "scheduling answers %d", answer);
	else
		atomic_fetch_add(&round_now.rejected, 1);
}

static void note_gone(struct record *r)
{
	atomic_store(&r->ended, true);
	if (atomic_load(&r->inside) != 0)
		violation_by(r, "gone while its callback runs");
}

static void cancel(struct member *m, bool wait, uint64_t timeout_ns)
{
	struct record *r = &m->record;
	bool was_cancelled = atomic_load(&m->cancelled_with_group);
	int answer = wait ? tw_cancel_wait(r->service, r->timer, timeout_ns)
			  : tw_cancel(r->service, r->timer);
	if (answer == TW_CANCELLED && was_cancelled)
		violation_by(r, "TW_CANCELLED after its group's cancel");
	if (answer == TW_RUNNING && wait && timeout_ns == TW_FOREVER)
		violation_by(r, "waiting without bound answers TW_RUNNING");
	if (answer == TW_RUNNING && was_cancelled)
		atomic_store(&m->running_told, true);
	if (answer == TW_CANCELLED || answer == TW_GONE || answer == TW_FINISHED)
		note_gone(r);
	if (wait && answer != TW_RUNNING && r->has_release && atomic_load(&r->releases) != 1)
		violation_by(r, "cancel_wait answers %d before its release has returned", answer);
}

static void move(struct member *m, uint64_t *seed)
{
	struct record *r = &m->record;
	bool was_cancelled = atomic_load(&m->cancelled_with_group);
	int answer = tw_reset(r->service, r->timer, random_below(seed, 5 * TW_MILLISECOND));
	if (answer == 0 && was_cancelled)
		violation_by(r, "moved after its group's cancel");
	if (answer == -ENOENT)
		atomic_store(&r->ended, true);
}

static void meddle(uint64_t *seed)
{
	size_t used = atomic_load(&shared.used), newest = used < RECORDS ? used : RECORDS;
	if (!newest)
		return;
	size_t back = random_below(seed, newest < 500 ? newest : 500);
	struct member *m = &shared.members[newest - 1 - back];
	if (!atomic_load(&m->record.accepted))
		return;
	unsigned dice = (unsigned)random_below(seed, 10);
	if (dice < 4)
		cancel(m, false, 0);
	else if (dice < 6)
		cancel(m, true, random_percent(seed, 50) ? TW_FOREVER : 0);
	else
		move(m, seed);
}

/* ------------------------------------------------------------ groups */

/* The members that a cancel of the group which begins now must meet. */
static size_t members_of(tw_group group, struct member **met)
{
	size_t used = atomic_load(&shared.used), n = 0;
	for (size_t i = used < RECORDS ? used : RECORDS; i-- > 0 && n < MET_MOST;) {
		struct member *m = &shared.members[i];
		if (atomic_load(&m->record.accepted) && m->group.id == group.id &&
		    !atomic_load(&m->cancelled_with_group))
			met[n++] = m;
	}
	return n;
}

/* What was claimed before the cancel may still show: one run. */
static void note_cancelled(struct member **met, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		lower_limit(&met[i]->record, atomic_load(&met[i]->record.started) + 1);
		atomic_store(&met[i]->cancelled_with_group, true);
	}
}

static void expect_settled(struct member **met, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct record *r = &met[i]->record;
		note_gone(r);
		if (r->has_release && atomic_load(&r->releases) != 1)
			violation_by(r, "its group was waited for, and it is not released");
		if (tw_cancel(r->service, r->timer) != TW_GONE)
			violation_by(r, "its group was waited for, and it is not gone");
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
	size_t place = atomic_fetch_add(&shared.born, 1);
	struct life *life = &shared.lives[place];
	if (place >= LIVES || tw_group_create(&life->group, shared.service) != 0)
		return NULL;
	life->touched = calloc(16, sizeof(*life->touched));
	if (!life->touched)
		abort();
	return life;
}

static void close_then(struct life *life)
{
	int answer = tw_group_close_then(shared.service, life->group, complete, life);
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
		expect_answer(tw_group_destroy(shared.service, fresh->group), 0);
		return;
	}
	if (ending == CLOSE_AND_DESTROY)
		expect_answer(tw_group_close(shared.service, life->group), 0);
	if (ending == CLOSE_THEN)
		life->destroys = true; /* nobody else does */
	if (ending >= CLOSE_THEN)
		close_then(life);
	if (ending != CLOSE_THEN)
		expect_answer(tw_group_destroy(shared.service, life->group), 0);
}

static void meddle_with_group(uint64_t *seed, bool may_wait)
{
	static _Thread_local struct member *met[MET_MOST];
	static _Thread_local bool inside; /* of releases that this very call runs */
	_Atomic(struct life *) *place = &shared.groups[random_below(seed, GROUPS)];
	struct life *life = atomic_load(place);
	tw_group group = life->group;
	unsigned dice = (unsigned)random_below(seed, 100);
	if (inside || dice < 10) {
		struct tw_group_stats stats = {.size = sizeof(stats)};
		expect_answer(tw_group_stats(shared.service, group, &stats), 0);
		return;
	}
	if (dice < 25) {
		make_again(place, life, (enum ending)random_below(seed, ENDINGS));
		return;
	}
	inside = true;
	size_t n = members_of(group, met);
	int answer;
	if (may_wait && dice < 60) {
		answer = tw_group_cancel_wait(shared.service, group,
					      dice < 50 ? TW_FOREVER : random_below(seed, 100000));
		expect_answer(answer, dice < 50 ? 0 : TW_RUNNING);
		if (answer == TW_CANCELLED)
			expect_settled(met, n);
	} else {
		answer = tw_group_cancel(shared.service, group);
		expect_answer(answer, 0);
	}
	if (answer != -ENOENT)
		note_cancelled(met, n);
	inside = false;
}

#endif
