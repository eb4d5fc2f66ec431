/*
 * Each request of the layers to the system fails, one after the other. The call that needed it
 * answers -ENOMEM (or the error of its header) and makes nothing. All that existed before goes on.
 * Each program starts again with the next request refused, on the same service, until none is
 * refused.
 */
#include <errno.h>
#include <stdlib.h>

#include "test/support/faults.h"
#include "test/support/rig.h"

TestSuite(faults_layers, .timeout = 60);

enum { SOME = 400, MANY = 20000 }; /* so that what grows on demand grows */

static atomic_int runs;

static void count(void *arg)
{
	runs++;
}

static void let_go(void *arg, enum tw_fate fate)
{
}

/*
 * A thread that runs a task for the first time asks for a record of it (tw_service_liveness), and
 * goes on if it is refused: so it has one.
 */
static void run_a_task(void)
{
	struct rig rig;
	tw_strand *strand;
	int before = runs;
	rig_open(&rig, NULL);
	expect_eq(tw_strand_create(&strand, rig.service, NULL), 0);
	expect_eq(tw_strand_submit(strand, count, NULL), 0);
	rig_advance(&rig, MS);
	expect_eq(runs, before + 1);
	expect_eq(tw_strand_destroy(strand), 0);
	rig_close(&rig);
}

/* The program: the first error that it meets. It puts away what it has made, whatever that was. */
typedef int program_fn(struct rig *rig);

static void refuse_each_in_turn(program_fn *program, long least)
{
	struct rig rig;
	rig_open(&rig, NULL);
	rig_map_slots(&rig, 1000);
	struct probe other = PROBE(&rig, 1);
	int rounds = 0;
	bool refused;
	long nth = 0;
	run_a_task();
	do {
		probe_schedule(&other, MS); /* an older timer, which all this is nothing to */
		faults_arm(nth++, false);
		int r = program(&rig);
		refused = faults_disarm();
		cr_assert(refused ? r == -ENOMEM || r == -EAGAIN : r >= 0, "request %ld (%s): %d",
			  nth - 1, refused ? faults_refused() : "none refused", r);
		rig_advance(&rig, 5 * MS);
		expect_eq(other.runs, ++rounds);
		expect_sound(rig.service);
	} while (refused);
	cr_assert(nth > least, "only %ld requests were made", nth - 1);
	rig_close(&rig);
}

static int use_strand(struct rig *rig)
{
	tw_strand *strand = NULL;
	tw_strand_task_id task = {0};
	struct tw_period period = {.size = sizeof period, .first_ns = MS, .period_ns = MS};
	struct tw_strand_task spec = {
	    .size = sizeof spec, .fn = count, .period = &period, .release = let_go};
	int r = tw_strand_create(&strand, rig->service, NULL);
	cr_assert((r == 0) == (strand != NULL));
	for (int i = 0; i < SOME && r == 0; i++) {
		r = tw_strand_schedule(strand, (uint64_t)(i % 3) * MS, count, NULL, &task);
		cr_assert((r == 0) == (task.id != 0));
	}
	r = r ? r : tw_strand_submit_task(strand, &spec, NULL);
	expect_eq(tw_strand_destroy(strand), 0);
	return r;
}

Test(faults_layers, strands)
{
	refuse_each_in_turn(use_strand, 3);
}

static int use_semaphore(struct rig *rig)
{
	tw_semaphore *semaphore = NULL;
	tw_waiter waiters[SOME] = {{0}};
	int r = tw_semaphore_create(&semaphore, rig->service, NULL, 0);
	cr_assert((r == 0) == (semaphore != NULL));
	int n = 0;
	for (; n < SOME && r == 0; n++) {
		r = tw_semaphore_acquire_async(semaphore, 1, count, NULL, &waiters[n]);
		cr_assert((r == 0) == (waiters[n].id != 0));
	}
	for (int i = 0; i < n && waiters[i].id; i++)
		expect_eq(tw_semaphore_cancel(semaphore, waiters[i]), TW_CANCELLED);
	expect_eq(tw_semaphore_destroy(semaphore), 0);
	return r;
}

Test(faults_layers, semaphores)
{
	refuse_each_in_turn(use_semaphore, 2);
}

static int one_turn(struct tw_turn *turn, void *arg)
{
	count(arg);
	return TW_TURN_DONE;
}

static int use_scheduler(struct rig *rig)
{
	tw_scheduler *scheduler = NULL;
	tw_scheduler_task_id task = {0};
	struct tw_scheduler_config config = {.size = sizeof config,
					     .executor = tw_executor_inline()};
	struct tw_scheduler_stats stats = {.size = sizeof stats};
	struct tw_scheduler_task post = {
	    .size = sizeof post, .fn = one_turn, .priority = TW_PRIORITY_NORMAL, .delay_ns = MS};
	int r = tw_scheduler_create(&scheduler, rig->service, &config);
	cr_assert((r == 0) == (scheduler != NULL));
	for (int i = 0; i < SOME && r == 0; i++) {
		post.delay_ns = (uint64_t)(i % 2) * MS;
		task = (tw_scheduler_task_id){0};
		r = tw_scheduler_submit_task(scheduler, &post, &task);
		cr_assert((r == 0) == (task.id != 0));
	}
	r = r ? r : tw_scheduler_stats(scheduler, &stats);
	rig_advance(rig, 5 * MS);
	expect_eq(tw_scheduler_destroy(scheduler), 0);
	return r;
}

Test(faults_layers, scheduler)
{
	refuse_each_in_turn(use_scheduler, 3);
}

static int a_job(void *arg, struct tw_job_run *run)
{
	count(arg);
	return 0;
}

static int use_limiter(struct rig *rig)
{
	tw_limiter *limiter = NULL;
	tw_job job = {0};
	struct tw_limiter_config config = {
	    .size = sizeof config, .max_concurrency = 2, .flags = TW_LIMITER_COLLECT};
	struct tw_limiter_task task = {.size = sizeof task, .fn = a_job};
	struct tw_limiter_stats stats = {.size = sizeof stats};
	int r = tw_limiter_create(&limiter, rig->service, &config);
	uint64_t accepted = 0;
	cr_assert((r == 0) == (limiter != NULL));
	for (int i = 0; i < SOME && r == 0; i++, accepted += r == 0) {
		job = (tw_job){0};
		task.timeout_ns = i % 2 ? SECOND : 0;
		r = tw_limiter_submit_task(limiter, &task, &job);
		cr_assert((r == 0) == (job.id != 0));
	}
	if (limiter && tw_limiter_stats(limiter, &stats) == 0)
		expect_eq(stats.added, accepted);
	r = r ? r : tw_limiter_set_paused(limiter, false);
	r = r ? r : tw_limiter_stats(limiter, &stats);
	rig_advance(rig, 20 * MS);
	if (limiter && r)
		/* jobs that have not started */
		expect_eq(tw_limiter_close(limiter, TW_CLOSE_DROP, 0), 0);
	rig_advance(rig, MS);
	expect_eq(tw_limiter_destroy(limiter), 0);
	return r;
}

Test(faults_layers, limiter)
{
	refuse_each_in_turn(use_limiter, 3);
}

static int use_tasks(struct rig *rig)
{
	static struct tw_service_histograms histograms = {.size = sizeof histograms};
	struct tw_period period = rate_of(MS, MS, 3);
	int r = 0;
	for (int i = 0; i < SOME && r == 0; i++) {
		tw_timer timer = {.id = 1};
		struct tw_task task = {.size = sizeof task, .fn = count, .release = let_go};
		task.period = i % 2 ? &period : NULL;
		r = tw_schedule_task(rig->service, &task, &timer);
		cr_assert((r == 0) == (timer.id != 0));
	}
	return r ? r : tw_service_histograms(rig->service, &histograms);
}

Test(faults_layers, tasks_with_extension_records_and_distributions)
{
	refuse_each_in_turn(use_tasks, 1);
}

static int use_sim(struct rig *rig)
{
	tw_sim *sim = NULL;
	int r = tw_sim_create(&sim, NULL);
	cr_assert((r == 0) == (sim != NULL));
	/* one: later ones can do without the slots that a refused request would have brought */
	r = r ? r : tw_schedule(tw_sim_service(sim), MS, count, NULL, NULL);
	expect_eq(tw_sim_destroy(sim), 0);
	return r;
}

Test(faults_layers, simulations)
{
	refuse_each_in_turn(use_sim, 5);
}

static int use_immediates(struct rig *rig)
{
	tw_action_scheduler *asap = NULL;
	struct tw_action_scheduler_config config = {
	    .size = sizeof config, .kind = TW_ACTION_KIND_ASAP, .service = rig->service};
	int r = tw_action_scheduler_create(&asap, &config);
	int told = 0, before = runs;
	cr_assert((r == 0) == (asap != NULL));
	for (int i = 0; i < SOME && r == 0; i++) {
		r = tw_immediate_submit(asap, count, NULL, NULL);
		told += r == 0;
	}
	rig_advance(rig, 5 * MS);
	expect_eq(runs - before, told);
	expect_eq(tw_action_scheduler_destroy(asap), 0);
	return r;
}

Test(faults_layers, immediates)
{
	refuse_each_in_turn(use_immediates, 3);
}

static int use_pool_stats(struct rig *rig)
{
	tw_pool *pool = NULL;
	struct tw_pool_config config = {.size = sizeof config, .workers = 1};
	struct tw_pool_stats stats = {.size = sizeof stats, .workers = 77};
	int r = tw_pool_create(&pool, &config);
	if (r == 0) {
		r = tw_pool_stats(pool, &stats);
		expect_eq(stats.workers, r == 0 ? 1 : 77);
	}
	expect_eq(tw_pool_destroy(pool), 0);
	return r;
}

Test(faults_layers, statistics_of_a_pool)
{
	refuse_each_in_turn(use_pool_stats, 2);
}

/* A thread's first submit asks for a record of its runs. */
static void *submit_twice(void *pool)
{
	for (int i = 0; i < 2; i++) {
		faults_arm(0, false);
		expect_eq(i ? tw_pool_submit_wait(pool, count, NULL, TW_FOREVER)
			    : tw_pool_submit(pool, count, NULL),
			  -ENOMEM);
		expect_eq(faults_disarm(), true);
	}
	expect_eq(tw_pool_submit(pool, count, NULL), 0);
	return NULL;
}

Test(faults_layers, submits_to_a_pool)
{
	tw_pool *pool = NULL;
	pthread_t thread;
	expect_eq(tw_pool_create(&pool, NULL), 0);
	expect_eq(pthread_create(&thread, NULL, submit_twice, pool), 0);
	pthread_join(thread, NULL);
	expect_eq(tw_pool_destroy(pool), 0);
	expect_eq(runs, 1);
}

/* ------------------------------------------------------------- an allocator of the program's */

/* Its blocks are aligned no better than a pointer. malloc counts, and refuses, as for others. */
static atomic_long held, asked;
static int user;

static void *own_block(void *arg, char *memory)
{
	cr_assert(arg == &user);
	asked++;
	held += memory != NULL;
	return memory ? memory + sizeof(void *) : NULL;
}

static void *own_malloc(void *arg, size_t bytes)
{
	return own_block(arg, malloc(bytes + sizeof(void *)));
}

static void *own_calloc(void *arg, size_t n, size_t bytes)
{
	return own_block(arg, calloc(1, n * bytes + sizeof(void *)));
}

static void own_free(void *arg, void *memory)
{
	cr_assert(arg == &user);
	held--;
	free((char *)memory - sizeof(void *));
}

static const struct tw_allocator own = {.size = sizeof own,
					.malloc = own_malloc,
					.calloc = own_calloc,
					.free = own_free,
					.user = &user};

static int use_service(struct rig *rig)
{
	tw_service *service = NULL;
	struct tw_service_config config = {.size = sizeof config, .workers = 2};
	int r = tw_service_create(&service, &config);
	expect_eq(tw_service_destroy(service), 0);
	return r;
}

/*
 * Whatever it refuses. All blocks go back to it, except for threads' records, which later threads
 * use again: of this one, a tick thread and two workers.
 */
Test(faults_layers, of_a_program_with_its_own_allocator)
{
	static program_fn *const programs[] = {use_strand,  use_scheduler, use_limiter,
					       use_tasks,   use_sim,       use_immediates,
					       use_service, use_pool_stats};
	expect_eq(tw_set_allocator(&own), 0);
	expect_eq(tw_set_allocator(NULL), 0);
	expect_eq(tw_set_allocator(&own), 0);
	for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
		refuse_each_in_turn(programs[i], 1);
	expect_eq(tw_set_allocator(&own), -EBUSY);
	expect_eq(tw_set_allocator(NULL), -EBUSY);
	cr_assert(asked > 1000 && held <= 4, "%ld blocks, %ld are held", asked, held);
}
