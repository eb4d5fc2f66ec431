/*
 * Threads for which the system has no memory for a lane: their calls that end timers and return
 * runs work, and are counted.
 */
#include <errno.h>
#include <pthread.h>

#include "test/support/faults.h"
#include "test/support/rig_suite.h"
#include "test/support/timer_script.h"

TestSuite(faults_no_memory, .init = open_rig, .fini = close_rig, .timeout = 30);

/* The ticket is not used up: the executor has it still. */
static void run_in_vain(const struct words *words)
{
	say_answer(queue_executor_run_next(timer_stage.queue));
	timer_stage.queue->head--;
}

static const struct verb verbs[] = {{"run_in_vain", run_in_vain}, {NULL, NULL}};

static const struct script scripts[] = {
    {"a cancel works and is counted",
     {{"timer 0 in=1 plain; timer 1 in=1; poor {timer 2 in=1 plain}", "ENOMEM"},
      {"poor {cancel 0}; poor {cancel 0}; poor {cancel 1}",
       "CANCELLED, GONE, 1 cancelled, CANCELLED"},
      {"stats cancelled pending; drive 2", "cancelled=2, pending=0"}}},
    {"a run that such a thread gives back is offered again",
     {{"given queued; timer 0 1 in=1 plain; hold; drive 1; poor {give_back}; poor {give_back}", ""},
      {"hold; drive 2; waiting; pump", "@3 2 wait, run 0 late=2, run 1 late=2"}}},
    /* the batch is used up by the cancel */
    {"a cancelled run that is given back is gone",
     {{"given queued; timer 0 in=1 plain; hold; drive 1; poor {cancel 0}; poor {give_back}",
       "@1 CANCELLED"},
      {"hold; drive 3; waiting", "@4 0 wait"}}},
    {"a thread that cannot run is told, and the ticket stays",
     {{"given queued; timer 0 in=1 plain; hold; drive 1; poor {run_in_vain}; pump",
       "@1 ENOMEM, run 0"}}},
    {"a close drops and counts",
     {{"timer 0 in=1 plain; timer 1 in=1; poor {close drop}; stats dropped",
       "1 dropped, dropped=2"}}},
};

Test(faults_no_memory, follow_the_scripts)
{
	PLAY(&timer_stage, verbs, scripts);
}

enum { MANY = 4096 };

static struct probe probes[MANY];

static void *cancel_all(void *cancelled)
{
	faults_arm(0, true); /* another thread cannot ask for memory meanwhile */
	for (int i = 0; i < MANY; i++)
		*(int *)cancelled += tw_cancel(rig.service, probes[i].timer) == TW_CANCELLED;
	faults_disarm();
	return NULL;
}

/*
 * Their slots serve others: of these there are 2^18 beyond max_timers, for threads that hold some
 * back.
 */
Test(faults_no_memory, slots_that_such_threads_free_serve_again)
{
	enum { ROUNDS = (1 << 18) / MANY + 6 };
	struct tw_service_config cfg = rig_config();
	int cancelled = 0;
	cfg.max_timers = MANY;
	reopen_rig(&cfg);
	for (int round = 0; round < ROUNDS; round++) {
		pthread_t thread;
		for (int i = 0; i < MANY; i++) {
			probes[i] = PROBE(&rig, i);
			probe_schedule(&probes[i], MS);
		}
		expect_eq(pthread_create(&thread, NULL, cancel_all, &cancelled), 0);
		pthread_join(thread, NULL);
	}
	expect_eq(cancelled, ROUNDS * MANY);
	expect_eq(stats_of(rig.service).cancelled, ROUNDS * MANY);
}
