/*
 * Strands on a pool's threads: order, one at a time, waiting, and services that end beside
 * them.
 */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "executor/pool/ring.h"
#include "test/support/shot.h"
#include "test/support/strands.h"

TestSuite(strand_real_pool, .timeout = 60);

enum { SUBMITTERS = 4, EACH = 20000 };

/* What one strand's tasks write down, plain on purpose: only the strand keeps them apart. */
struct diary {
	tw_strand *strand;
	long runs, disorders;
	long last[SUBMITTERS];
	int inside;
	pthread_t thread;
	long threads; /* changes of it */
	sem_t *done;
	long wanted;
};

struct line {
	struct diary *diary;
	int submitter;
	long number;
};

static void write_line(void *arg)
{
	struct line *line = arg;
	struct diary *diary = line->diary;
	if (diary->inside++)
		diary->disorders++;
	if (diary->last[line->submitter] + 1 != line->number)
		diary->disorders++;
	diary->last[line->submitter] = line->number;
	if (!pthread_equal(diary->thread, pthread_self()))
		diary->threads++;
	diary->thread = pthread_self();
	diary->inside--;
	if (++diary->runs == diary->wanted)
		sem_post(diary->done);
}

struct submitter {
	struct line *lines;
	struct diary *diary;
	int number;
	pthread_t thread;
};

static void *submit_lines(void *arg)
{
	struct submitter *s = arg;
	for (long i = 0; i < EACH; i++) {
		s->lines[i] = (struct line){s->diary, s->number, i + 1};
		if (tw_strand_submit(s->diary->strand, write_line, &s->lines[i]))
			abort();
	}
	return NULL;
}

static void all_submit(struct diary *diary)
{
	struct submitter submitters[SUBMITTERS];
	sem_t done;
	sem_init(&done, 0, 0);
	diary->done = &done;
	diary->wanted = (long)SUBMITTERS * EACH;
	for (int i = 0; i < SUBMITTERS; i++) {
		submitters[i] = (struct submitter){calloc(EACH, sizeof(struct line)), diary, i, 0};
		expect_eq(pthread_create(&submitters[i].thread, NULL, submit_lines, &submitters[i]),
			  0);
	}
	for (int i = 0; i < SUBMITTERS; i++)
		pthread_join(submitters[i].thread, NULL);
	await(&done, 1);
	for (int i = 0; i < SUBMITTERS; i++)
		free(submitters[i].lines);
	sem_destroy(&done);
	expect_eq(diary->runs, (long)SUBMITTERS * EACH);
	expect_eq(diary->disorders, 0);
}

Test(strand_real_pool, many_threads_submit_and_all_runs_in_order_one_at_a_time)
{
	tw_service *service = open_service(3);
	struct diary diary = {0};
	expect_eq(tw_strand_create(&diary.strand, service, NULL), 0);
	all_submit(&diary);
	expect_eq(tw_strand_destroy(diary.strand), 0);
	close_service(service);
}

Test(strand_real_pool, a_strand_on_a_pool_with_one_worker_stays_on_one_thread)
{
	tw_pool *pool;
	tw_service *service = open_service(1);
	struct tw_pool_config one = {.size = sizeof one, .workers = 1, .max_workers = 1};
	expect_eq(tw_pool_create(&pool, &one), 0);
	for (int i = 0; i < 4; i++) {
		struct diary diary = {0};
		expect_eq(tw_strand_create(&diary.strand, service, tw_pool_executor(pool)), 0);
		all_submit(&diary);
		expect_eq(diary.threads, 1);
		expect_eq(tw_pool_close(pool, TW_CLOSE_DRAIN, NULL, NULL), -EBUSY);
		expect_eq(tw_strand_destroy(diary.strand), 0);
	}
	close_service(service);
	expect_eq(tw_pool_destroy(pool), 0);
}

static void post(void *arg)
{
	sem_post(arg);
}

/* -------------------------------------------------------------------- waiting */

struct gate {
	sem_t begun, open;
	int after; /* plain: visible after a wait */
};

static void pass_gate(void *arg)
{
	struct gate *gate = arg;
	sem_post(&gate->begun);
	await(&gate->open, 1);
	gate->after = 1;
}

static void *open_gate(void *arg)
{
	sem_post(&((struct gate *)arg)->open);
	return NULL;
}

static void gate_init(struct gate *gate)
{
	sem_init(&gate->begun, 0, 0);
	sem_init(&gate->open, 0, 0);
	gate->after = 0;
}

Test(strand_real_pool, waits_for_the_task_that_runs)
{
	tw_service *service = open_service(1);
	tw_strand *strand;
	tw_strand_task_id task;
	struct gate gate;
	pthread_t opener;
	int answer = TW_GONE;
	for (int round = 0; round < 2; round++) {
		gate_init(&gate);
		expect_eq(tw_strand_create(&strand, service, NULL), 0);
		expect_eq(tw_strand_schedule(strand, 0, pass_gate, &gate, &task), 0);
		await(&gate.begun, 1);
		if (round == 0) {
			expect_eq(tw_strand_cancel(strand, task), TW_RUNNING);
			expect_eq(tw_strand_cancel_wait(strand, task, MS), TW_RUNNING);
		} else {
			expect_eq(tw_strand_close(strand, MS), -ETIMEDOUT);
		}
		expect_eq(pthread_create(&opener, NULL, open_gate, &gate), 0);
		if (round == 0)
			answer = tw_strand_cancel_wait(strand, task, TW_FOREVER);
		else
			expect_eq(tw_strand_close(strand, TW_FOREVER), 0);
		expect_eq(gate.after, 1);
		expect_eq(pthread_join(opener, NULL), 0);
		/* the opener may have been the quicker */
		expect_eq(answer == TW_FINISHED || answer == TW_GONE, true);
		expect_eq(tw_strand_destroy(strand), 0);
	}
	close_service(service);
}

/*
 * A release that waits to be let go, called by a close that goes on to wait for the task that runs.
 */
struct pair {
	tw_strand *strand;
	tw_strand_task_id task; /* the one with the release */
	struct gate release;
	int answer;
	sem_t answered;
};

static void pass_release_gate(void *arg, enum tw_fate fate)
{
	pass_gate(&((struct pair *)arg)->release);
}

static void *close_and_wait(void *arg)
{
	if (tw_strand_close(((struct pair *)arg)->strand, TW_FOREVER))
		abort();
	return NULL;
}

static void *cancel_and_wait(void *arg)
{
	struct pair *pair = arg;
	pair->answer = tw_strand_cancel_wait(pair->strand, pair->task, TW_FOREVER);
	sem_post(&pair->answered);
	return NULL;
}

Test(strand_real_pool, a_release_that_is_over_is_told_before_its_caller_waits_for_something_else)
{
	tw_service *service = open_service(1);
	struct pair pair = {.answer = -1};
	struct gate gate;
	pthread_t closing, canceller;
	gate_init(&gate);
	gate_init(&pair.release);
	sem_init(&pair.answered, 0, 0);
	struct tw_strand_task spec = {
	    .size = sizeof spec, .fn = pass_gate, .arg = &pair, .release = pass_release_gate};
	expect_eq(tw_strand_create(&pair.strand, service, NULL), 0);
	expect_eq(tw_strand_submit(pair.strand, pass_gate, &gate), 0);
	expect_eq(tw_strand_submit_task(pair.strand, &spec, &pair.task), 0);
	await(&gate.begun, 1);
	expect_eq(pthread_create(&closing, NULL, close_and_wait, &pair), 0);
	await(&pair.release.begun, 1);
	expect_eq(pthread_create(&canceller, NULL, cancel_and_wait, &pair), 0);
	await_strand_sleeper(pair.strand);
	sem_post(&pair.release.open);
	await(&pair.answered, 1); /* while the first task still runs */
	expect_eq(pair.answer, TW_FINISHED);
	sem_post(&gate.open);
	pthread_join(canceller, NULL);
	pthread_join(closing, NULL);
	expect_eq(tw_strand_destroy(pair.strand), 0);
	close_service(service);
}

static void block_until(void *arg)
{
	atomic_int *gate = arg; /* 1: inside; 2: go on */
	atomic_store(gate, 1);
	while (atomic_load(gate) != 2)
		sched_yield();
}

/*
 * More strands wait than the pool's ring has cells, and nobody drives the service meanwhile. The
 * pool counts each strand as one item.
 */
Test(strand_real_pool, more_strands_than_the_ring_has_cells_need_no_tick_and_are_in_the_gauge)
{
	enum { STRANDS = TW__RING_CELLS_MIN + 100 };
	struct tw_service_config cfg = {
	    .size = sizeof cfg, .workers = 1, .max_workers = 1, .drive = TW_DRIVE_MANUAL};
	struct tw_pool_stats stats = {.size = sizeof stats};
	static tw_strand *strands[STRANDS];
	atomic_int gate = 0;
	tw_service *service;
	sem_t done;
	sem_init(&done, 0, 0);
	expect_eq(tw_service_create(&service, &cfg), 0);
	for (int i = 0; i < STRANDS; i++)
		expect_eq(tw_strand_create(&strands[i], service, NULL), 0);
	expect_eq(tw_strand_submit(strands[0], block_until, &gate), 0);
	while (atomic_load(&gate) != 1)
		sched_yield();
	for (int i = STRANDS; i < 3 * STRANDS; i++)
		if (i % STRANDS)
			expect_eq(tw_strand_submit(strands[i % STRANDS], post, &done), 0);
	expect_eq(tw_service_pool_stats(service, &stats), 0);
	expect_eq(stats.queued, STRANDS - 1);
	expect_eq(stats.running, 1);
	atomic_store(&gate, 2);
	await(&done, 2 * (STRANDS - 1));
	expect_eq(tw_service_pool_stats(service, &stats), 0);
	expect_eq(stats.queued, 0);
	for (int i = 0; i < STRANDS; i++)
		expect_eq(tw_strand_destroy(strands[i]), 0);
	expect_eq(tw_service_destroy(service), 0);
	sem_destroy(&done);
}
