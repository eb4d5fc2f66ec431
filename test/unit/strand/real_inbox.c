/* A strand's inbox that is long: calls on the strand come in between, also a close. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "executor/strand/internal.h"
#include "test/support/rig.h"

TestSuite(strand_real_inbox, .timeout = 120);

static struct {
	tw_strand *strand;
	atomic_bool over;
	atomic_uint runs, between;
} looking;

/* A part of the inbox has been reversed: the lock is free meanwhile. */
static bool is_between(tw_strand *strand)
{
	tw__object_lock(&strand->object);
	bool between = strand->object.coming && strand->object.arrived;
	tw__object_unlock(&strand->object);
	return between;
}

static void *look(void *arg)
{
	while (!atomic_load(&looking.over))
		atomic_fetch_add(&looking.between, is_between(looking.strand));
	return arg;
}

static void count_looked(void *arg)
{
	atomic_fetch_add(&looking.runs, 1);
}

static void run_inbox(tw_semaphore *semaphore, tw_manual *queue, int32_t many)
{
	atomic_store(&looking.runs, 0);
	for (int32_t i = 0; i < many; i++)
		expect_eq(tw_semaphore_acquire_async(semaphore, 1, count_looked, NULL, NULL), 0);
	while (tw_manual_pump(queue, TW_NO_LIMIT) > 0)
		continue;
	expect_eq(atomic_load(&looking.runs), (unsigned)many);
	expect_eq(tw_semaphore_release(semaphore, many), 0);
}

/* A busy machine may give the other thread no processor during a whole round. */
Test(strand_real_inbox, calls_beside_a_long_inbox_come_in_between)
{
	enum { MANY = 300000 };
	tw_service *service = NULL;
	tw_manual *queue = NULL;
	tw_semaphore *semaphore = NULL;
	pthread_t thread;
	expect_eq(tw_service_create(&service, NULL), 0);
	expect_eq(tw_manual_create(&queue, NULL), 0);
	expect_eq(tw_strand_create(&looking.strand, service, tw_manual_executor(queue)), 0);
	expect_eq(
	    tw_semaphore_create(&semaphore, service, tw_strand_executor(looking.strand), MANY), 0);
	expect_eq(pthread_create(&thread, NULL, look, NULL), 0);
	uint64_t end_ns = tw_clock_now(tw_clock_monotonic()) + 90 * TW_SECOND;
	while (!atomic_load(&looking.between) && tw_clock_now(tw_clock_monotonic()) < end_ns)
		run_inbox(semaphore, queue, MANY);
	atomic_store(&looking.over, true);
	expect_eq(pthread_join(thread, NULL), 0);
	expect_gt(atomic_load(&looking.between), 0);
	expect_eq(tw_semaphore_destroy(semaphore), 0);
	expect_eq(tw_strand_destroy(looking.strand), 0);
	expect_eq(tw_service_destroy(service), 0);
	expect_eq(tw_manual_destroy(queue), 0);
}

/* ------------------------------------------------------------- beside a close */

enum { TIMERS = 20, WORKS = 200 };

static struct {
	struct rig rig;
	tw_pool *pool;
	tw_strand *strand;
	tw_semaphore *semaphore;
	atomic_int held, go_on, runs, releases, works, spins;
	int runs_at_close, releases_at_close;
} ending;

static void hold(void *arg)
{
	atomic_store(&ending.held, 1);
	while (!atomic_load(&ending.go_on))
		sched_yield();
}

static void count_run(void *arg)
{
	atomic_fetch_add(&ending.runs, 1);
}

static void count_release(void *arg, enum tw_fate fate)
{
	atomic_fetch_add(&ending.releases, 1);
}

static void count_work(void *arg)
{
	atomic_fetch_add(&ending.works, 1);
}

static void *close_strand(void *arg)
{
	while (!atomic_load(&ending.go_on))
		sched_yield();
	for (int i = 0; i < atomic_load(&ending.spins); i++)
		atomic_load(&ending.held);
	expect_eq(tw_strand_close(ending.strand, TW_FOREVER), 0);
	ending.runs_at_close = atomic_load(&ending.runs);
	ending.releases_at_close = atomic_load(&ending.releases);
	return arg;
}

/* Timers and work, in turns, while a task holds the strand. */
static void fill_inbox(void)
{
	struct tw_task task = {.size = sizeof task,
			       .fn = count_run,
			       .release = count_release,
			       .executor = tw_strand_executor(ending.strand)};
	for (int i = 0; i < TIMERS; i++) {
		for (int j = 0; j < WORKS; j++)
			expect_eq(
			    tw_semaphore_acquire_async(ending.semaphore, 1, count_work, NULL, NULL),
			    0);
		expect_eq(tw_schedule_task(ending.rig.service, &task, NULL), 0);
		rig_advance(&ending.rig, 2 * MS);
	}
}

static void race_close(int spins)
{
	pthread_t thread;
	struct tw_service_config config = rig_config();
	config.executor = tw_pool_executor(ending.pool);
	rig_open(&ending.rig, &config);
	atomic_store(&ending.held, 0);
	atomic_store(&ending.go_on, 0);
	atomic_store(&ending.runs, 0);
	atomic_store(&ending.releases, 0);
	atomic_store(&ending.works, 0);
	atomic_store(&ending.spins, spins);
	expect_eq(tw_strand_create(&ending.strand, ending.rig.service, NULL), 0);
	expect_eq(tw_semaphore_create(&ending.semaphore, ending.rig.service,
				      tw_strand_executor(ending.strand), TIMERS * WORKS),
		  0);
	expect_eq(tw_strand_submit(ending.strand, hold, NULL), 0);
	while (!atomic_load(&ending.held))
		sched_yield();
	fill_inbox();
	expect_eq(pthread_create(&thread, NULL, close_strand, NULL), 0);
	atomic_store(&ending.go_on, 1);
	expect_eq(pthread_join(thread, NULL), 0);
	expect_eq(ending.releases_at_close, TIMERS);
	while (atomic_load(&ending.works) < TIMERS * WORKS)
		sched_yield();
	expect_eq(atomic_load(&ending.runs), ending.runs_at_close);
	expect_eq(tw_semaphore_release(ending.semaphore, TIMERS * WORKS), 0);
	while (tw_semaphore_destroy(ending.semaphore) == -EBUSY)
		sched_yield();
	expect_eq(tw_strand_destroy(ending.strand), 0);
	rig_close(&ending.rig);
}

Test(strand_real_inbox, close_beside_it_ends_each_timer_once_and_leaves_the_work)
{
	struct tw_pool_config config = {.size = sizeof config, .workers = 2};
	expect_eq(tw_pool_create(&ending.pool, &config), 0);
	for (int round = 0; round < 100; round++)
		race_close(round * 200);
	expect_eq(tw_pool_destroy(ending.pool), 0);
}
