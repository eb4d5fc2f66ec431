/*
 * Threads for which the system has no memory for a lane: their calls that end timers and return
 * runs work, and are counted.
 */
#include <errno.h>
#include <pthread.h>

#include "test/support/faults.h"
#include "test/support/rig_suite.h"

TestSuite(faults_no_memory, .init = open_rig, .fini = close_rig, .timeout = 30);

struct job {
	void (*work)(struct job *job);
	struct probe *probe;
	int answer;
};

/* Inside the thread; another one cannot ask for memory meanwhile. */
static void *work_without_memory(void *arg)
{
	struct job *job = arg;
	faults_arm(0, true);
	job->work(job);
	faults_disarm();
	return NULL;
}

static int in_a_poor_thread(struct job job)
{
	pthread_t thread;
	expect_eq(pthread_create(&thread, NULL, work_without_memory, &job), 0);
	expect_eq(pthread_join(thread, NULL), 0);
	return job.answer;
}

static void schedule(struct job *job)
{
	job->answer = tw_schedule(rig.service, MS, probe_run, job->probe, &job->probe->timer);
}

static void cancel(struct job *job)
{
	job->answer = tw_cancel(rig.service, job->probe->timer);
}

static void run_next(struct job *job)
{
	job->answer = queue_executor_run_next(&queue);
}

/* As an executor that received -ENOMEM: the ticket is not used up. */
static void drop_next(struct job *job)
{
	job->answer = queue_executor_drop_next(&queue);
}

static void close_service(struct job *job)
{
	job->answer = tw_service_close(rig.service, TW_CLOSE_DROP, TW_FOREVER);
}

Test(faults_no_memory, a_cancel_works_and_is_counted)
{
	struct probe plain = PROBE(&rig, 1), released = PROBE(&rig, 2), own = PROBE(&rig, 3);
	probe_schedule(&plain, MS);
	probe_schedule_released(&released, MS);
	expect_eq(in_a_poor_thread((struct job){schedule, .probe = &own}), -ENOMEM);
	expect_eq(in_a_poor_thread((struct job){cancel, .probe = &plain}), TW_CANCELLED);
	expect_eq(in_a_poor_thread((struct job){cancel, .probe = &plain}), TW_GONE);
	expect_eq(in_a_poor_thread((struct job){cancel, .probe = &released}), TW_CANCELLED);
	expect_released(&released, TW_FATE_CANCELLED);
	struct tw_service_stats stats = stats_of(rig.service);
	expect_eq(stats.cancelled, 2);
	expect_eq(stats.pending, 0);
	rig_advance(&rig, 2 * MS);
	expect_eq(rig.ran, 0);
}

enum { MANY = 4096 };

static struct probe probes[MANY];

static void cancel_all(struct job *job)
{
	for (int i = 0; i < MANY; i++)
		job->answer += tw_cancel(rig.service, probes[i].timer) == TW_CANCELLED;
}

/*
 * Their slots serve others: of these there are 2^18 beyond max_timers, for threads that hold some
 * back.
 */
Test(faults_no_memory, slots_that_such_threads_free_serve_again)
{
	enum { ROUNDS = (1 << 18) / MANY + 6 };
	struct tw_service_config cfg = rig_config();
	cfg.max_timers = MANY;
	reopen_rig(&cfg);
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < MANY; i++) {
			probes[i] = PROBE(&rig, i);
			probe_schedule(&probes[i], MS);
		}
		expect_eq(in_a_poor_thread((struct job){.work = cancel_all}), MANY);
	}
	expect_eq(stats_of(rig.service).cancelled, ROUNDS * MANY);
}

Test(faults_no_memory, a_run_that_such_a_thread_gives_back_is_offered_again)
{
	reopen_on_queue();
	struct probe first = PROBE(&rig, 1), second = PROBE(&rig, 2);
	probe_schedule(&first, MS);
	probe_schedule(&second, MS);
	rig_advance(&rig, MS);
	expect_eq(queue_executor_waiting(&queue), 2);
	expect_eq(in_a_poor_thread((struct job){.work = drop_next}), 0);
	expect_eq(in_a_poor_thread((struct job){.work = drop_next}), 0);
	expect_eq(rig.ran, 0);
	rig_advance(&rig, 2 * MS);
	expect_eq(queue_executor_waiting(&queue), 2);
	expect_eq(queue_executor_run_all(&queue), 2);
	expect_eq(first.runs, 1);
	expect_eq(second.runs, 1);
}

/* The batch is used up by a cancel meanwhile; nothing is offered again. */
Test(faults_no_memory, a_cancelled_run_that_is_given_back_is_gone)
{
	reopen_on_queue();
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, MS);
	rig_advance(&rig, MS);
	expect_eq(in_a_poor_thread((struct job){cancel, .probe = &probe}), TW_CANCELLED);
	expect_eq(in_a_poor_thread((struct job){.work = drop_next}), 0);
	rig_advance(&rig, 3 * MS);
	expect_eq(queue_executor_waiting(&queue), 0);
	expect_eq(probe.runs, 0);
}

Test(faults_no_memory, a_thread_that_cannot_run_is_told_and_the_ticket_stays)
{
	reopen_on_queue();
	struct probe probe = PROBE(&rig, 1);
	probe_schedule(&probe, MS);
	rig_advance(&rig, MS);
	expect_eq(in_a_poor_thread((struct job){.work = run_next}), -ENOMEM);
	queue.head--; /* the ticket is not used up: the executor has it still */
	expect_eq(queue_executor_run_all(&queue), 1);
	expect_eq(probe.runs, 1);
}

Test(faults_no_memory, a_close_drops_and_counts)
{
	struct probe plain = PROBE(&rig, 1), released = PROBE(&rig, 2);
	probe_schedule(&plain, MS);
	probe_schedule_released(&released, MS);
	expect_eq(in_a_poor_thread((struct job){.work = close_service}), 0);
	expect_released(&released, TW_FATE_DROPPED);
	expect_eq(stats_of(rig.service).dropped, 2);
}
