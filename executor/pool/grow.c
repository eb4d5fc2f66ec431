/*
 * Growth: a pool starts more workers while callbacks block, and ends workers that have been idle
 * for long.
 *
 * The reserve is one thread of each pool that may grow. It sleeps until a run waits and no worker
 * is idle (tw__reserve_arm). Then it looks every 2 ms:
 * 1. If no run waits, or a worker is idle or searches, there is no need. Each such look in a row
 *    doubles the time until the next one, up to 16 ms, and after eight it sleeps again. Workers of
 *    a busy service are all inside short runs for a moment in each tick. If the reserve slept each
 *    time, they would have to wake it in each tick; if it went on looking every 2 ms, it would take
 *    a tenth of the service's CPU time.
 *    A submitter that is no worker of the pool, and finds none idle, ends such a **pause**
 *    (TW__CALL_PAUSED): the next look comes 2 ms after the last one.
 * 2. A worker is **blocked** if it has been inside the same run since the last look. A worker whose
 *    thread is runnable only lacks a processor, so it counts as blocked after 20 ms: a backlog of
 *    short callbacks on a busy machine must not make the pool grow.
 * 3. While runs wait, the pool needs `permanent` workers that are not blocked. The reserve starts
 *    those that are missing. If the next look still finds need, it starts four times the number,
 *    and so on. While the pool grows, looks are 0.5 ms apart. A look that meets a new worker before
 *    its first run does not end the growth: on a busy machine the thread may wait for a processor
 *    for longer than looks are apart.
 * 4. If a run has lasted since the last look, it sets runs_last. Workers that run many things in a
 *    row then give the worker back when their time is over.
 * 5. If a thread cannot be started, or the pool is at its maximum, it counts that, and looks less
 *    often while the need lasts.
 *
 * A worker beyond the permanent ones that has been idle for 10 s ends (wake.c). Its thread is
 * joined when the slot gets another worker, or when the pool ends. Until then the system has the
 * memory of its stack back, except with musl and where memory is locked. A slot is initialized
 * once: other threads may read its `joiners` at any time.
 *
 * A submitter only sets a bit, and wakes the reserve if the bit was not set. Only the reserve
 * creates threads and allocates memory.
 *
 * The model of arming and ending is test/model/grow.pml.
 *
 * Pairing table (of arming: wake.c, POOL7)
 *   GROW1  state: store-release RETIRED (the worker, its last store) -> load acquire (the
 *       reserve): it is joined, and then its slot is used again.
 *   GROW2  runs_last: store relaxed (the reserve) -> load relaxed (a worker that runs many things
 *       in a row, before each). No data follows: a worker that sees it late looks at the time one
 *       thing later. Without it a run waits until the worker has run its 64 things, however long
 *       each takes.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "executor/pool/grow.h"
#include "executor/pool/internal.h"
#include "executor/pool/worker.h"

enum { MS = 1000000, STEPS_MAX = 5, GROWING_LOOKS = 4, CROWDED_LOOKS = 8 };
enum { LOOKS_WITHOUT_NEED = 8, DOUBLINGS = 3 };

struct tw__pool_times tw__pool_times = {.look_ns = 2 * MS,
					.on_cpu_ns = 20 * MS,
					.idle_ns = 10000 * UINT64_C(1000000),
					.retry_ns = 10 * MS,
					.max_retry_ns = 1000 * MS};

static bool may_grow(const tw_pool *pool)
{
	return pool->max_workers > pool->permanent;
}

static void pool_call(tw_pool *pool, uint32_t what)
{
	if (!(tw_or_seq_cst(&pool->reserve.calls, what) & what))
		tw__futex_wake(&pool->reserve.calls, 1);
}

/* A submitter finds no idle worker: ends the pause. */
static void pool_hurry(tw_pool *pool)
{
	if (tw_and_seq_cst(&pool->reserve.calls, ~(uint32_t)TW__CALL_PAUSED) & TW__CALL_PAUSED)
		tw__futex_wake(&pool->reserve.calls, 1);
}

void tw__reserve_arm(tw_pool *pool)
{
	uint32_t calls = tw_load_seq_cst(&pool->reserve.calls); /* POOL7 */
	if (!(calls & TW__CALL_ARMED)) {
		if (may_grow(pool))
			pool_call(pool, TW__CALL_ARMED);
	} else if (calls & TW__CALL_PAUSED && !tw__pool_is_worker(pool)) {
		pool_hurry(pool);
	}
}

void tw__reserve_retired(struct tw__worker *self)
{
	tw_add_seq_cst(&self->pool->alive, (uint32_t)-1);
	tw_store_release(&self->state, TW__WORKER_RETIRED); /* GROW1 */
}

/* -------------------------------------------------------------------- looking */

/*
 * Tells whether the batch that the worker shows has runs to claim. The look counts as a joiner, so
 * the batch is not returned meanwhile.
 */
static bool shows_runs(struct tw__worker *worker)
{
	if (!tw_load_seq_cst(&worker->open))
		return false;
	tw_add_seq_cst(&worker->joiners, 1); /* SHOW1 */
	tw_batch *batch = tw_load_seq_cst(&worker->open);
	bool left = batch && tw__batch_left(batch, tw_load_seq_cst(&worker->open_sequence));
	tw_sub_seq_cst(&worker->joiners, 1); /* SHOW2 */
	return left;
}

bool tw__pool_runs_wait(tw_pool *pool)
{
	bool wait = tw__pool_more_waits(pool);
	for (unsigned i = 0, slots = tw_load_seq_cst(&pool->slots); i < slots && !wait; i++)
		wait = shows_runs(&pool->workers[i]);
	return wait;
}

/* Runs wait, and no worker is about to take them. */
static bool is_short(tw_pool *pool)
{
	return tw_load_seq_cst(&pool->asleep.searching) == 0 &&
	       tw_load_seq_cst(&pool->asleep.sleepers) == 0 && tw__pool_runs_wait(pool);
}

/*
 * Tells whether the thread is runnable: it runs, or waits for a processor. Also false if the system
 * does not say.
 */
static bool is_runnable(const struct tw__worker *worker)
{
	char path[48], text[128];
	snprintf(path, sizeof path, "/proc/self/task/%u/stat", tw_load_relaxed(&worker->thread_id));
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t n = read(fd, text, sizeof text - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	const char *name_end = strrchr(text, ')'); /* "123 (tw-0) R ..." */
	return name_end && name_end[1] == ' ' && name_end[2] == 'R';
}

static bool is_blocked(tw_pool *pool, struct tw__worker *worker, uint64_t now_ns)
{
	uint64_t runs = tw_load_relaxed(&worker->runs);
	if (!(runs & 1) || runs != worker->seen_runs) {
		worker->seen_runs = runs;
		worker->seen_ns = now_ns;
		return false;
	}
	uint64_t age_ns = now_ns - worker->seen_ns;
	if (worker->blocked_runs == runs)
		return true;
	if (age_ns < pool->times.look_ns / (pool->reserve.steps ? GROWING_LOOKS : 1))
		return false;
	if (age_ns < pool->times.on_cpu_ns && is_runnable(worker))
		return false;
	if (tw_load_relaxed(&worker->runs) != runs) /* it has gone on, and slept, meanwhile */
		return false;
	worker->blocked_runs = runs;
	return true;
}

/* A worker that has not begun the first run of its thread, and does not sleep. */
static bool is_starting(tw_pool *pool, const struct tw__worker *worker)
{
	unsigned i = worker->index;
	return tw_load_relaxed(&worker->runs) == worker->first_runs &&
	       !(tw_load_seq_cst(&pool->asleep.idle[i / 64]) >> i % 64 & 1);
}

/* It is inside the same run as at the last look. */
static bool lasts(const struct tw__worker *worker)
{
	uint64_t runs = tw_load_relaxed(&worker->runs);
	return runs & 1 && runs == worker->seen_runs;
}

/* How many workers are not blocked. */
static unsigned able_workers(tw_pool *pool, uint64_t now_ns)
{
	unsigned alive = 0, blocked = 0, lasting = 0, starting = 0;
	for (unsigned i = 0, slots = tw_load_seq_cst(&pool->slots); i < slots; i++) {
		struct tw__worker *worker = &pool->workers[i];
		if (tw_load_acquire(&worker->state) != TW__WORKER_ALIVE) /* GROW1 */
			continue;
		alive++;
		if (is_starting(pool, worker)) {
			starting++;
			continue;
		}
		lasting += lasts(worker);
		blocked += is_blocked(pool, worker, now_ns);
	}
	if (starting > 0)
		pool->reserve.looks_since_growth = 0;
	tw_store_relaxed(&pool->reserve.runs_last, lasting > 0); /* GROW2 */
	return alive - blocked;
}

/* -------------------------------------------------------------------- growing */

/* A retired thread that is still inside an exit handler of the user keeps its slot. */
static bool has_thread(struct tw__worker *worker)
{
	uint32_t state = tw_load_acquire(&worker->state); /* GROW1 */
	return state != TW__WORKER_NONE &&
	       (state != TW__WORKER_RETIRED || pthread_tryjoin_np(worker->thread, NULL));
}

/* A slot without a thread, or NULL: all are in use. */
static struct tw__worker *free_slot(tw_pool *pool)
{
	unsigned slots = tw_load_seq_cst(&pool->slots);
	for (unsigned i = pool->permanent; i < slots; i++)
		if (!has_thread(&pool->workers[i]))
			return &pool->workers[i];
	if (slots == pool->max_workers)
		return NULL;
	tw__pool_slot_init(pool, slots);
	tw_store_seq_cst(&pool->slots, slots + 1); /* it is complete */
	return &pool->workers[slots];
}

static bool start_one_more(tw_pool *pool, struct tw__worker *worker, uint64_t now_ns)
{
	worker->retired = false;
	worker->first_runs = tw_load_relaxed(&worker->runs);
	worker->seen_runs = worker->first_runs + 1; /* its first run begins soon */
	worker->seen_ns = now_ns;
	int r = tw__worker_start(worker, &pool->reserve.threads);
	tw_bump(r ? &pool->reserve.start_failures : &pool->reserve.grown, 1);
	return r == 0;
}

/* The pool is at its maximum. It counts if all workers are blocked, once until there is no need. */
static void note_maximum(struct tw__reserve *reserve, unsigned able)
{
	if (able == 0 && !reserve->crowded) {
		reserve->crowded = true;
		tw_bump(&reserve->at_max, 1);
	}
}

/* After a failure, and at the maximum, the next look comes later. */
static void pool_grow(tw_pool *pool, unsigned able, uint64_t now_ns)
{
	struct tw__reserve *reserve = &pool->reserve;
	struct tw__worker *slot = NULL;
	bool failed = false, full = true;
	unsigned n = (pool->permanent - able) << 2 * reserve->steps;
	for (; n > 0 && !failed && (slot = free_slot(pool)); n--) {
		failed = !start_one_more(pool, slot, now_ns);
		full = false;
	}
	if (failed) {
		reserve->look_at_ns = now_ns + reserve->retry_wait_ns;
		if (reserve->retry_wait_ns < pool->times.max_retry_ns)
			reserve->retry_wait_ns *= 2;
		return;
	}
	reserve->retry_wait_ns = pool->times.retry_ns;
	if (full)
		note_maximum(reserve, able);
	else
		reserve->crowded = false;
	reserve->look_at_ns = now_ns + (full ? CROWDED_LOOKS * pool->times.look_ns
					     : pool->times.look_ns / GROWING_LOOKS);
}

static void look(tw_pool *pool, uint64_t now_ns)
{
	struct tw__reserve *reserve = &pool->reserve;
	reserve->looks_without_need = 0;
	unsigned able = able_workers(pool, now_ns);
	if (able < pool->permanent) {
		pool_grow(pool, able, now_ns);
		reserve->steps += reserve->steps < STEPS_MAX;
		reserve->looks_since_growth = 0;
		return;
	}
	/*
	 * New workers may need a moment until they block in their first runs. It is counted in
	 * looks: on a busy machine the reserve waits for a processor, too.
	 */
	if (reserve->looks_since_growth >= GROWING_LOOKS)
		reserve->steps = 0;
	reserve->crowded = false;
	reserve->look_at_ns = now_ns + pool->times.look_ns / (reserve->steps ? GROWING_LOOKS : 1);
}

static void end_pause(tw_pool *pool)
{
	pool->reserve.paused = false;
	tw_and_seq_cst(&pool->reserve.calls, ~(uint32_t)TW__CALL_PAUSED);
}

/* Before a long wait. Of a submitter that hurries nobody, and this look, one sees the other. */
static void begin_pause(tw_pool *pool)
{
	pool->reserve.paused = true;
	tw_or_seq_cst(&pool->reserve.calls, TW__CALL_PAUSED); /* POOL7 */
	if (is_short(pool))
		end_pause(pool);
}

/* No run waits for a busy pool. The next look needs to know which runs last. */
static void look_without_need(tw_pool *pool, uint64_t now_ns)
{
	struct tw__reserve *reserve = &pool->reserve;
	unsigned doublings =
	    reserve->looks_without_need < DOUBLINGS ? reserve->looks_without_need : DOUBLINGS;
	(void)able_workers(pool, now_ns);
	if (reserve->steps && !reserve->looks_since_growth) { /* a new worker searches */
		reserve->look_at_ns = now_ns + pool->times.look_ns / GROWING_LOOKS;
		return;
	}
	reserve->looks_without_need++;
	reserve->steps = 0;
	reserve->crowded = false;
	reserve->retry_wait_ns = pool->times.retry_ns;
	if (doublings > 0)
		begin_pause(pool);
	reserve->look_at_ns = now_ns + (pool->times.look_ns << (reserve->paused ? doublings : 0));
}

static bool is_hurried(const struct tw__reserve *reserve, uint32_t calls)
{
	return reserve->paused && !(calls & TW__CALL_PAUSED);
}

/* The next look comes as if the last one had not begun a pause. */
static void hurry(tw_pool *pool)
{
	struct tw__reserve *reserve = &pool->reserve;
	reserve->paused = false;
	reserve->looks_without_need = 0;
	reserve->look_at_ns = reserve->looked_ns + pool->times.look_ns;
}

/* The last of such looks. */
static void pool_disarm(tw_pool *pool)
{
	struct tw__reserve *reserve = &pool->reserve;
	reserve->looks_without_need = 0;
	reserve->paused = false;
	reserve->look_at_ns = UINT64_MAX;
	tw_store_relaxed(&reserve->runs_last, 0);                                       /* GROW2 */
	tw_and_seq_cst(&reserve->calls, ~(uint32_t)(TW__CALL_ARMED | TW__CALL_PAUSED)); /* POOL7 */
	if (is_short(pool))
		tw_or_seq_cst(&reserve->calls, TW__CALL_ARMED);
}

/* ---------------------------------------------------------------- the reserve */

/* Looks if it is time. The first look comes as soon as the reserve is armed. */
static void see_to_need(tw_pool *pool, uint32_t calls, uint64_t now_ns)
{
	struct tw__reserve *reserve = &pool->reserve;
	if (is_hurried(reserve, calls))
		hurry(pool);
	if (!(calls & (TW__CALL_ARMED | TW__CALL_STOP)) ||
	    (reserve->look_at_ns != UINT64_MAX && now_ns < reserve->look_at_ns))
		return;
	reserve->looked_ns = now_ns;
	reserve->looks_since_growth++;
	if (reserve->paused)
		end_pause(pool);
	if (is_short(pool))
		look(pool, now_ns);
	else
		look_without_need(pool, now_ns);
	if (reserve->looks_without_need == LOOKS_WITHOUT_NEED)
		pool_disarm(pool);
	if (calls & TW__CALL_STOP && reserve->look_at_ns == UINT64_MAX)
		reserve->look_at_ns = now_ns + pool->times.look_ns;
}

static void sleep_until_called(struct tw__reserve *reserve, uint32_t calls)
{
	uint32_t now = tw_load_seq_cst(&reserve->calls);
	bool armed_again = now & TW__CALL_ARMED && reserve->look_at_ns == UINT64_MAX;
	if (!armed_again && !is_hurried(reserve, now) && !(now & ~calls & TW__CALL_STOP))
		tw__futex_wait(&reserve->calls, now, reserve->look_at_ns);
}

static void *reserve_main(void *arg)
{
	tw_pool *pool = arg;
	for (;;) {
		uint32_t calls = tw_load_seq_cst(&pool->reserve.calls);
		if (calls & TW__CALL_STOP && !tw__pool_runs_wait(pool))
			return NULL;
		see_to_need(pool, calls, tw_clock_now(tw_clock_monotonic()));
		sleep_until_called(&pool->reserve, calls);
	}
}

static int copy_settings(struct tw__reserve *reserve, const struct tw_service_config *config)
{
	reserve->threads = (struct tw_service_config){.stack_size = config->stack_size,
						      .affinity_size = config->affinity_size};
	snprintf(reserve->name, sizeof reserve->name, "%.9s", config->thread_name);
	reserve->threads.thread_name = reserve->name;
	if (!config->affinity)
		return 0;
	void *affinity = malloc(config->affinity_size);
	if (!affinity)
		return -ENOMEM;
	memcpy(affinity, config->affinity, config->affinity_size);
	reserve->threads.affinity = affinity;
	return 0;
}

int tw__reserve_start(tw_pool *pool, const struct tw_service_config *config)
{
	struct tw__reserve *reserve = &pool->reserve;
	if (!may_grow(pool))
		return 0;
	reserve->look_at_ns = UINT64_MAX;
	reserve->retry_wait_ns = pool->times.retry_ns;
	int r = copy_settings(reserve, config);
	if (!r)
		r = tw__spawn(&reserve->thread, config, "-grow", false, reserve_main, pool);
	reserve->started = r == 0;
	return r;
}

void tw__reserve_stop(tw_pool *pool)
{
	if (!pool->reserve.started)
		return;
	pool_call(pool, TW__CALL_STOP);
	pthread_join(pool->reserve.thread, NULL);
}
