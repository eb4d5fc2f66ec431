/*
 * Moments inside the pool's calls, and inside a submit of work, that threads meet only by chance.
 * Here a hook stops at each (faults.h).
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "executor/pool/layer.h"
#include "pools.h"
#include "test/support/faults.h"
#include "test/support/rig.h"

TestSuite(pool_seams, .timeout = 60);

/* ------------------------------------------------------------ the ring's close */

struct half_pushed {
	struct tw__ring ring;
	struct tw__pool_task task;
	int finished;
};

static void nothing(void *arg)
{
	(void)arg;
}

/* As in a push that was preempted between its two halves. */
static void begin_push(struct half_pushed *h)
{
	h->task = (struct tw__pool_task){.fn = nothing, .arg = h};
	tw_add_relaxed(&h->ring.tail, 1);
}

static void finish_push(void *arg)
{
	struct half_pushed *h = arg;
	if (h->finished++)
		return;
	tw_store_relaxed(&h->ring.cells[1].fn, h->task.fn);
	tw_store_relaxed(&h->ring.cells[1].arg, h->task.arg);
	tw_store_seq_cst(&h->ring.cells[1].sequence, 2);
}

Test(pool_seams, the_rings_close_waits_for_a_task_that_is_being_written)
{
	struct half_pushed h = {0};
	struct tw__pool_task whole = {.fn = nothing}, popped = {0};
	expect_eq(tw__ring_init(&h.ring, 16), true);
	expect_eq(tw__ring_push(&h.ring, &whole), 0);
	begin_push(&h);
	expect_eq(tw__ring_push(&h.ring, &whole), 0);
	faults_at_pauses(finish_push, &h);
	tw__ring_await(&h.ring, tw__ring_close(&h.ring));
	faults_at_pauses(NULL, NULL);
	expect_eq(h.finished, 1);
	expect_eq(tw__ring_push(&h.ring, &whole), -ESHUTDOWN);
	expect_eq(tw__ring_count(&h.ring), 3);
	for (int i = 0; i < 3; i++) {
		expect_eq(tw__ring_waits(&h.ring, 0), true);
		expect_eq(tw__ring_pop(&h.ring, &popped), true);
		expect_eq(popped.arg == &h, i == 1);
	}
	expect_eq(tw__ring_waits(&h.ring, 0), false);
	expect_eq(tw__ring_pop(&h.ring, &popped), false);
	free(h.ring.memory);
}

/* ------------------------------------------- what is left behind a slow task */

/*
 * Both workers sleep. The first task calls one of them, and while that one is still on its way
 * something else is brought, whose bringer trusts in it: so it must see to that, before it begins
 * with what is slow, and returns only when the other has run.
 */
struct scene {
	tw_pool *pool;
	tw_service *service;
	tw_clock *clock;
	struct tw__base base;
	struct tw__work work;
	void (*bring)(struct scene *scene);
	atomic_int ran, slow_ran;
	bool brought;
};

static void run_quick(void *arg)
{
	atomic_fetch_add(&((struct scene *)arg)->ran, 1);
}

static void run_quick_work(struct tw__work *work)
{
	run_quick((char *)work - offsetof(struct scene, work));
}

static void run_slow(void *arg)
{
	struct scene *scene = arg;
	while (!atomic_load(&scene->ran))
		sched_yield(); /* forever, if they wait for the slow one */
	atomic_fetch_add(&scene->slow_ran, 1);
}

static void bring_task(struct scene *scene)
{
	tw_pool_submit(scene->pool, run_quick, scene);
}

static void bring_work(struct scene *scene)
{
	tw__work_submit(&scene->work);
}

static void bring_batch(struct scene *scene)
{
	tw_service_advance(scene->service, TW_NO_LIMIT);
}

static void bring(void *arg)
{
	struct scene *scene = arg;
	if (!scene->brought)
		scene->bring(scene);
	scene->brought = true;
}

static void open_scene(struct scene *scene, uint32_t workers)
{
	struct tw_pool_config cfg = {
	    .size = sizeof cfg, .workers = workers, .max_workers = workers, .queue = 16};
	expect_eq(tw_pool_create(&scene->pool, &cfg), 0);
	expect_eq(tw_clock_manual_create(&scene->clock, 0), 0);
	struct tw_service_config config = {.size = sizeof config,
					   .clock = scene->clock,
					   .drive = TW_DRIVE_MANUAL,
					   .executor = tw_pool_executor(scene->pool)};
	expect_eq(tw_service_create(&scene->service, &config), 0);
	expect_eq(tw__base_hold(&scene->base, scene->service, NULL), 0);
	tw__work_init(&scene->work, scene->service, scene->base.executor, run_quick_work);
}

static void close_scene(struct scene *scene)
{
	tw__base_leave(&scene->base, TW__BASE_OVER);
	expect_eq(tw_service_destroy(scene->service), 0);
	expect_eq(tw_pool_destroy(scene->pool), 0);
	tw_clock_manual_destroy(scene->clock);
}

static void await_sleepers(tw_pool *pool)
{
	while (!pool_sleeps(pool, pool->permanent))
		sched_yield();
}

static void sees_to_what_was_brought(void (*what)(struct scene *scene))
{
	struct scene scene = {.bring = what};
	open_scene(&scene, 2);
	for (int rounds = 0; rounds < 40;) {
		scene.brought = false;
		scene.ran = scene.slow_ran = 0;
		if (what == bring_batch)
			expect_eq(tw_schedule(scene.service, 0, run_quick, &scene, NULL), 0);
		await_sleepers(scene.pool);
		faults_at_wakes(bring, NULL, &scene);
		expect_eq(tw_pool_submit(scene.pool, run_slow, &scene), 0);
		faults_at_wakes(NULL, NULL, NULL);
		rounds += scene.brought;
		if (!scene.brought) /* the one who was called had not fallen asleep: once more */
			bring(&scene);
		while (!atomic_load(&scene.slow_ran))
			sched_yield();
	}
	close_scene(&scene);
}

Test(pool_seams, a_worker_sees_to_what_is_behind_its_task)
{
	void (*const brings[])(struct scene * scene) = {bring_task, bring_work, bring_batch};
	for (size_t i = 0; i < sizeof brings / sizeof *brings; i++)
		sees_to_what_was_brought(brings[i]);
}

/* ------------------------------------- ends that meet one who is still waking somebody */

struct bringer {
	struct tw__work work;
	atomic_bool inside, go, done;
	atomic_int ran;
	pthread_t thread;
};

static void run_brought(struct tw__work *work)
{
	atomic_fetch_add(&((struct bringer *)(void *)work)->ran, 1);
}

/* It has been submitted, and is run by now. */
static void stay_inside(void *arg)
{
	struct bringer *bringer = arg;
	atomic_store(&bringer->inside, true);
	while (!atomic_load(&bringer->go))
		sched_yield();
}

static void *submit_slowly(void *arg)
{
	struct bringer *bringer = arg;
	faults_at_wakes(NULL, stay_inside, bringer);
	tw__work_submit(&bringer->work);
	faults_at_wakes(NULL, NULL, NULL);
	atomic_store(&bringer->done, true);
	return NULL;
}

static void let_on(void *arg)
{
	atomic_store(&((struct bringer *)arg)->go, true);
}

/* Until somebody had to be woken for it: until then `asleep` was true too early. */
static void bring_until_inside(struct bringer *bringer, bool (*asleep)(void *of), void *of)
{
	for (;;) {
		atomic_store(&bringer->done, false);
		atomic_store(&bringer->ran, 0);
		while (!asleep(of))
			sched_yield();
		expect_eq(pthread_create(&bringer->thread, NULL, submit_slowly, bringer), 0);
		while (!atomic_load(&bringer->inside) && !atomic_load(&bringer->done))
			sched_yield();
		while (!atomic_load(&bringer->ran))
			sched_yield();
		if (atomic_load(&bringer->inside))
			return;
		pthread_join(bringer->thread, NULL);
	}
}

static bool all_asleep(void *pool)
{
	return pool_sleeps(pool, ((tw_pool *)pool)->permanent);
}

Test(pool_seams, close_waits_for_one_who_still_wakes_a_worker)
{
	struct scene scene = {0};
	struct bringer bringer = {0};
	open_scene(&scene, 1);
	tw__work_init(&bringer.work, scene.service, scene.base.executor, run_brought);
	bring_until_inside(&bringer, all_asleep, scene.pool);
	tw__base_leave(&scene.base, TW__BASE_OVER);
	expect_eq(tw_service_destroy(scene.service), 0);
	faults_at_pauses(let_on, &bringer);
	expect_eq(tw_pool_close(scene.pool, TW_CLOSE_DRAIN, NULL, NULL), 0);
	faults_at_pauses(NULL, NULL);
	bool waited = atomic_load(&bringer.go);
	let_on(&bringer);
	pthread_join(bringer.thread, NULL);
	expect_eq(waited, true);
	expect_eq(tw_pool_destroy(scene.pool), 0);
	tw_clock_manual_destroy(scene.clock);
}

static bool driver_sleeps(void *of)
{
	tw_service *service = of;
	return tw_load_seq_cst(&service->gate.word) & TW__GATE_PARKED;
}

Test(pool_seams, a_service_outlasts_one_who_still_wakes_its_tick_thread)
{
	struct bringer bringer = {0};
	tw_service *service;
	struct tw_service_config config = {.size = sizeof config, .executor = tw_executor_inline()};
	expect_eq(tw_service_create(&service, &config), 0);
	expect_eq(tw__service_hold(service), 0);
	tw__work_init(&bringer.work, service, tw_executor_inline(), run_brought);
	bring_until_inside(&bringer, driver_sleeps, service);
	tw__service_let_go(service);
	faults_at_sleeps(let_on, &bringer);
	expect_eq(tw_service_close(service, TW_CLOSE_DROP, TW_FOREVER), 0);
	faults_at_sleeps(NULL, NULL);
	bool waited = atomic_load(&bringer.go);
	let_on(&bringer);
	pthread_join(bringer.thread, NULL);
	expect_eq(waited, true);
	expect_eq(tw_service_destroy(service), 0);
}
