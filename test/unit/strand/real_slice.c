/* How long a strand keeps a worker of a pool for which something else waits. */
#include <unistd.h>

#include "test/support/shot.h"

TestSuite(strand_real_slice, .timeout = 60);

enum { LINE = 64, FEW = 16 };

struct line {
	sem_t begun, open, done;
	atomic_int ran, ran_before_other;
};

static void block(void *arg)
{
	struct line *line = arg;
	sem_post(&line->begun);
	await(&line->open, 1);
}

static void take_ten_ms(void *arg)
{
	struct line *line = arg;
	usleep(10000);
	if (atomic_fetch_add(&line->ran, 1) == 0)
		sem_post(&line->begun);
	if (atomic_load(&line->ran) == LINE)
		sem_post(&line->done);
}

static void note_count(void *arg)
{
	struct line *line = arg;
	atomic_store(&line->ran_before_other, atomic_load(&line->ran));
	sem_post(&line->done);
}

static void line_init(struct line *line)
{
	sem_init(&line->begun, 0, 0);
	sem_init(&line->open, 0, 0);
	sem_init(&line->done, 0, 0);
	atomic_store(&line->ran, 0);
}

/*
 * All but one worker are blocked, and the pool is at its maximum. The last one runs a strand's
 * line.
 */
static void other_comes_beside_a_line(uint32_t workers, uint32_t max_workers)
{
	tw_pool *pool;
	tw_strand *strand;
	struct line line;
	struct tw_pool_config config = {
	    .size = sizeof config, .workers = workers, .max_workers = max_workers};
	tw_service *service = open_service(1);
	line_init(&line);
	expect_eq(tw_pool_create(&pool, &config), 0);
	expect_eq(tw_strand_create(&strand, service, tw_pool_executor(pool)), 0);
	for (uint32_t i = 1; i < max_workers; i++)
		expect_eq(tw_pool_submit(pool, block, &line), 0);
	await(&line.begun, max_workers - 1);
	for (int i = 0; i < LINE; i++)
		expect_eq(tw_strand_submit(strand, take_ten_ms, &line), 0);
	await(&line.begun, 1);
	expect_eq(tw_pool_submit(pool, note_count, &line), 0);
	await(&line.done, 2);
	/* by the number of tasks alone it would be all */
	expect_le(atomic_load(&line.ran_before_other), FEW);
	for (uint32_t i = 1; i < max_workers; i++)
		sem_post(&line.open);
	expect_eq(tw_strand_destroy(strand), 0);
	close_service(service);
	expect_eq(tw_pool_destroy(pool), 0);
}

/* The pool has grown to its maximum, or may not grow. */
Test(strand_real_slice, a_strand_gives_back_the_last_worker_of_a_pool)
{
	other_comes_beside_a_line(1, 3);
	other_comes_beside_a_line(1, 1);
}
