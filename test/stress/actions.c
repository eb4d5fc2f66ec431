/*
 * actions SECONDS [SEED]: actions of all kinds on a service. Several threads arm, re-arm,
 * run, close and destroy them at the same time, under contexts. Other actions free themselves.
 *
 * The rules:
 *   - the actions of one scheduler never overlap, nor do they overlap with `failed`;
 *   - no action runs after a close has answered that none of its runs is left;
 *   - an action that is armed and left alone runs;
 *   - each action that frees itself has one release;
 *   - schedulers and service can be destroyed when the actions are gone.
 */
#include "test/stress/stress.h"

enum { THREADS = 3, SLOTS = 24, SCHEDULERS = 4, OPS = 3000 };

static const enum tw_action_kind kinds[SCHEDULERS] = {TW_ACTION_KIND_ASYNC, TW_ACTION_KIND_ASAP,
						      TW_ACTION_KIND_FRAME, TW_ACTION_KIND_QUEUE};

/* One action's life; outlives it. */
struct life {
	struct life *next;
	int scheduler;
	atomic_bool over;
	atomic_ulong runs;
	uint64_t seed; /* the runs' own, which the library orders */
};

static struct slot {
	pthread_rwlock_t lock; /* to write: the action is destroyed, or made */
	tw_action *action;
	struct life *life;
} slots[SLOTS];

static tw_service *service;
static tw_action_scheduler *schedulers[SCHEDULERS];
static atomic_int inside[SCHEDULERS];
static _Atomic(struct life *) lives;
static atomic_ulong runs, failures, immediates, immediates_ran, immediates_cleared, made;
static atomic_ulong selves, selves_released;
static atomic_bool calm; /* runs do no more than run */

static int work(tw_action *action, void *state);

static void arm(tw_action *action, struct life *life, uint64_t *seed)
{
	uint64_t delay_ns = random_percent(seed, 40) ? 0 : random_below(seed, 400000);
	int error = tw_action_schedule(action, life, delay_ns);
	if (error && error != -ECANCELED && error != 77)
		violation("arm", error);
}

static void close_one(tw_action *action, struct life *life, uint64_t *seed)
{
	int r = tw_action_close(action, random_percent(seed, 50) ? 0 : TW_FOREVER);
	if (r < 0)
		violation("close", r);
	if (r == TW_CANCELLED || r == TW_GONE || r == TW_FINISHED)
		atomic_store(&life->over, true);
}

static void touch_another(uint64_t *seed)
{
	struct slot *slot = &slots[random_below(seed, SLOTS)];
	if (pthread_rwlock_tryrdlock(&slot->lock))
		return; /* its owner may be waiting for this very run */
	if (!slot->action) {
		pthread_rwlock_unlock(&slot->lock); /* the round is being closed */
		return;
	}
	if (random_percent(seed, 80)) {
		arm(slot->action, slot->life, seed);
	} else if (tw_action_close(slot->action, 0) != TW_RUNNING) {
		atomic_store(&slot->life->over, true);
	}
	pthread_rwlock_unlock(&slot->lock);
}

static int work(tw_action *action, void *state)
{
	struct life *life = state;
	int answer = 0;
	if (tw_context_get() != &lives)
		violation("a run without its context", 0);
	if (atomic_load(&life->over))
		violation("a run after its end", 0);
	if (atomic_fetch_add(&inside[life->scheduler], 1))
		violation("runs of one scheduler overlap", life->scheduler);
	atomic_fetch_add(&runs, 1);
	if (!atomic_load(&calm)) {
		if (random_percent(&life->seed, 30))
			arm(action, life, &life->seed);
		if (random_percent(&life->seed, 20))
			touch_another(&life->seed);
		if (random_percent(&life->seed, 3))
			tw_action_close(action, 0);
		answer = random_percent(&life->seed, 2) ? 77 : 0;
	}
	atomic_fetch_add(&life->runs, 1);
	atomic_fetch_sub(&inside[life->scheduler], 1);
	return answer;
}

static void count_failure(void *arg, tw_action *action, int failure, size_t closed)
{
	atomic_int *of_scheduler = arg;
	if (failure != 77)
		violation("another failure", failure);
	if (atomic_fetch_add(of_scheduler, 1))
		violation("failed is called beside a run", 0);
	atomic_fetch_add(&failures, 1);
	atomic_fetch_sub(of_scheduler, 1);
}

struct self {
	uint64_t seed;
	int scheduler;
	atomic_int releases;
};

static int run_self(tw_action *action, void *state)
{
	struct self *self = state;
	unsigned what = (unsigned)random_below(&self->seed, 100);
	if (atomic_fetch_add(&inside[self->scheduler], 1))
		violation("runs of one scheduler overlap", self->scheduler);
	if (atomic_load(&self->releases))
		violation("a run after the release", 0);
	int answer = what < 30 ? 77 : 0;
	if (what >= 30 && what < 60)
		tw_action_destroy(action);
	else if (what >= 60)
		tw_action_close(action, 0);
	atomic_fetch_sub(&inside[self->scheduler], 1);
	return answer;
}

static void release_self(tw_action *action, void *state, enum tw_fate fate)
{
	struct self *self = state;
	if (atomic_fetch_add(&self->releases, 1))
		violation("a second release", 0);
	tw_action_destroy(action);
	free(self);
	atomic_fetch_add(&selves_released, 1);
}

static void make_self(uint64_t *seed)
{
	struct self *self = calloc(1, sizeof(*self));
	tw_action *action;
	int error;
	self->seed = random_next(seed);
	self->scheduler = (int)random_below(seed, SCHEDULERS);
	uint64_t delay_ns = random_percent(seed, 40) ? 0 : random_below(seed, 400000);
	wanted("create with a release",
	       tw_action_create(&action, schedulers[self->scheduler], run_self, release_self), 0);
	atomic_fetch_add(&selves, 1);
	error = tw_action_schedule(action, self, delay_ns);
	if (error && error != 77)
		violation("arm of one that frees itself", error);
}

static void run_immediate(void *arg)
{
	atomic_fetch_add(&immediates_ran, 1);
}

static void make(struct slot *slot, uint64_t *seed)
{
	struct life *life = calloc(1, sizeof(*life));
	life->scheduler = (int)random_below(seed, SCHEDULERS);
	life->seed = random_next(seed);
	life->next = atomic_load(&lives);
	while (!atomic_compare_exchange_weak(&lives, &life->next, life)) {
	}
	wanted("create", tw_action_create(&slot->action, schedulers[life->scheduler], work, NULL),
	       0);
	slot->life = life;
	atomic_fetch_add(&made, 1);
}

static void make_anew(struct slot *slot, uint64_t *seed)
{
	pthread_rwlock_wrlock(&slot->lock);
	if (random_percent(seed, 50))
		close_one(slot->action, slot->life, seed);
	int r = tw_action_destroy(slot->action);
	if (r < 0)
		violation("destroy", r);
	if (r != TW_RUNNING)
		atomic_store(&slot->life->over, true);
	make(slot, seed);
	pthread_rwlock_unlock(&slot->lock);
}

static void set_and_clear(uint64_t *seed)
{
	tw_action_scheduler *scheduler = schedulers[1 + random_below(seed, 2)];
	tw_immediate immediate;
	wanted("tw_immediate_submit",
	       tw_immediate_submit(scheduler, run_immediate, NULL, &immediate), 0);
	atomic_fetch_add(&immediates, 1);
	if (random_percent(seed, 50) && tw_immediate_cancel(scheduler, immediate) == TW_CANCELLED)
		atomic_fetch_add(&immediates_cleared, 1);
}

static void do_one(uint64_t *seed)
{
	struct slot *slot = &slots[random_below(seed, SLOTS)];
	unsigned what = (unsigned)random_below(seed, 100);
	if (what < 8) {
		make_anew(slot, seed);
		return;
	}
	if (what < 14) {
		set_and_clear(seed);
		return;
	}
	if (what < 20) {
		make_self(seed);
		return;
	}
	pthread_rwlock_rdlock(&slot->lock);
	if (what < 88) {
		arm(slot->action, slot->life, seed);
	} else if (what < 94) {
		close_one(slot->action, slot->life, seed);
	} else {
		int r = tw_action_run(slot->action, slot->life);
		if (r && r != 77 && r != -EBUSY && r != -ECANCELED)
			violation("run", r);
	}
	pthread_rwlock_unlock(&slot->lock);
}

static void hammer(unsigned number, uint64_t seed)
{
	tw_context_set(&lives);
	for (int i = 0; i < OPS; i++)
		do_one(&seed);
}

static bool rests(const struct slot *slot)
{
	return tw_action_state(slot->action) != TW_ACTION_STATE_ARMED;
}

static uint64_t actions_left(void)
{
	struct tw_action_scheduler_stats stats = {.size = sizeof(stats)};
	uint64_t left = 0;
	for (int i = 0; i < SCHEDULERS; i++) {
		tw_action_scheduler_stats(schedulers[i], &stats);
		left += stats.actions;
	}
	return left;
}

/* Left alone, all that is armed runs. */
static void settle(void)
{
	atomic_store(&calm, true);
	for (int i = 0; i < SLOTS; i++)
		AWAIT(rests(&slots[i]), "an armed action does not run");
}

static void open_round(uint64_t *seed)
{
	service = open_service((struct tw_service_config){
	    .tick_ns = 50000, .workers = 1 + (uint32_t)random_below(seed, 3)});
	for (int i = 0; i < SCHEDULERS; i++) {
		struct tw_action_scheduler_config config = {
		    .size = sizeof(config),
		    .kind = kinds[i],
		    .service = service,
		    .flags = random_percent(seed, 50) ? TW_ACTION_FLAG_CANCEL_BATCH : 0,
		    .failed_arg = &inside[i],
		    .frames_per_second = kinds[i] == TW_ACTION_KIND_FRAME ? 1000 : 0,
		    .failed = count_failure};
		wanted("scheduler", tw_action_scheduler_create(&schedulers[i], &config), 0);
	}
	for (int i = 0; i < SLOTS; i++)
		make(&slots[i], seed);
}

static void close_round(void)
{
	for (int i = 0; i < SLOTS; i++) {
		pthread_rwlock_wrlock(&slots[i].lock); /* runs of others may be at it */
		if (tw_action_destroy(slots[i].action) < 0)
			violation("destroy", i);
		slots[i].action = NULL;
		pthread_rwlock_unlock(&slots[i].lock);
	}
	AWAIT(actions_left() == 0, "immediates or actions that free themselves are left");
	for (int i = 0; i < SCHEDULERS; i++)
		wanted("scheduler destroy", tw_action_scheduler_destroy(schedulers[i]), 0);
	wanted("service destroy", tw_service_destroy(service), 0);
	for (struct life *life = atomic_exchange(&lives, NULL), *next; life; life = next) {
		next = life->next;
		free(life);
	}
	if (atomic_load(&selves) != atomic_load(&selves_released))
		violation("releases that were not called", (long long)(selves - selves_released));
}

static void round_of(uint64_t *seed)
{
	tw_context_set(&lives);
	atomic_store(&calm, false);
	open_round(seed);
	start_threads(THREADS, hammer, seed);
	join_all_threads();
	if (random_percent(seed, 50))
		settle();
	close_round();
	if (atomic_load(&immediates_ran) + atomic_load(&immediates_cleared) >
	    atomic_load(&immediates))
		violation("immediates that ran though cleared, or twice", 0);
}

static void report(const char *word)
{
	printf("%s %lu rounds, %lu actions, %lu runs, %lu failures told, %lu immediates (%lu "
	       "cleared), %lu released\n",
	       word, stress_rounds, made, runs, failures, immediates, immediates_cleared,
	       selves_released);
}

int main(int argc, char **argv)
{
	for (int i = 0; i < SLOTS; i++)
		pthread_rwlock_init(&slots[i].lock, NULL);
	return stress_play(argc, argv, round_of, report);
}
