/* Verbs of all stages: time, the queue, the service, memory, contexts. */
#include "script_verbs.h"

#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <time.h>

#include "faults.h"

enum { FILLERS = 1 << 16 };

static const struct stage *stage;
static struct queue_executor stuck;
static tw_timer fillers[FILLERS];
static int filled;
static bool holds;
static char contexts[10];

enum { GATES = 8 };

static struct gate {
	sem_t begun, go_on;
	pthread_t thread; /* of `beside` */
} gates[GATES];

static void take(sem_t *semaphore)
{
	while (sem_wait(semaphore) != 0)
		;
}

static void stand(const struct words *words)
{
	struct gate *gate = &gates[words->number[0]];
	sem_post(&gate->begun);
	take(&gate->go_on);
}

static void begun(const struct words *words)
{
	EACH_NUMBER (words, n)
		take(&gates[n].begun);
}

static void let(const struct words *words)
{
	EACH_NUMBER (words, n)
		sem_post(&gates[n].go_on);
}

static void *play_beside(void *calls)
{
	play_calls(calls);
	return NULL;
}

static void beside(const struct words *words)
{
	struct gate *gate = &gates[words->number[0]];
	expect_eq(pthread_create(&gate->thread, NULL, play_beside, (void *)words->in_run), 0);
}

static void joined(const struct words *words)
{
	EACH_NUMBER (words, n)
		expect_eq(pthread_join(gates[n].thread, NULL), 0);
}

/* Real time, so that who should wait and does not is seen. */
static void pause_here(const struct words *words)
{
	nanosleep(&(struct timespec){.tv_nsec = (long)(words->number[0] * (int64_t)MS)}, NULL);
}

/* Between a wait's last look and its sleep. */
static void play_once(void *calls)
{
	faults_at_sleeps(NULL, NULL);
	play_calls(calls);
}

static void at_sleep(const struct words *words)
{
	faults_at_sleeps(play_once, (void *)words->in_run);
}

/* As many tickets wait. */
static void queued(const struct words *words)
{
	while (queue_executor_waiting(stage->queue) < (size_t)words->number[0])
		sched_yield();
}

static void nothing(void *arg)
{
}

static void fill(const struct words *words)
{
	tw_service *service = stage->rig->service;
	while (filled < FILLERS && tw_schedule(service, DAY, nothing, NULL, &fillers[filled]) == 0)
		filled++;
	expect_gt(filled, 0);
	expect_lt(filled, FILLERS);
}

static void empty(const struct words *words)
{
	while (filled > 0)
		expect_eq(tw_cancel(stage->rig->service, fillers[--filled]), TW_CANCELLED);
}

tw_executor *script_executor;

struct tw_service_config script_service(const struct words *given)
{
	struct tw_service_config config = rig_config();
	bool is_refused = has_word(given, "refused");
	stuck.refuse = is_refused ? SIZE_MAX : 0;
	if (has_word(given, "queued"))
		config.executor = &stage->queue->base;
	if (has_word(given, "own"))
		config.executor = script_executor;
	if (has_word(given, "stuck") || is_refused)
		config.executor = &stuck.base;
	if (has_word(given, "small") || has_word(given, "full"))
		config.max_timers = 1; /* rounded up to what a service has at least */
	return config;
}

void script_begin(const struct stage *next)
{
	stage = next;
	queue_executor_open(&stuck);
	for (int i = 0; i < GATES; i++) {
		sem_init(&gates[i].begun, 0, 0);
		sem_init(&gates[i].go_on, 0, 0);
	}
}

void script_opened(const struct words *given)
{
	if (has_word(given, "full"))
		fill(given);
	if (has_word(given, "mapped"))
		rig_map_slots(stage->rig, 20000);
}

void script_end(void)
{
	tw_context_set(NULL);
	empty(NULL);
}

void script_closed(void)
{
	queue_executor_close(&stuck);
}

static void schedule(const struct words *words)
{
	say_answer(tw_schedule(stage->rig->service, MS, nothing, NULL, NULL));
}

static void close_service(const struct words *words)
{
	uint64_t timeout_ns = words->numbers ? (uint64_t)words->number[0] * MS : TW_FOREVER;
	say_answer(tw_service_close(stage->rig->service, TW_CLOSE_DROP, timeout_ns));
}

/* It lives on, so it must not be destroyed. */
static void destroy_service(const struct words *words)
{
	expect_eq(tw_service_destroy(stage->rig->service), -EBUSY);
	say("EBUSY");
}

static void say_pending(const struct words *words)
{
	say("%d pending", (int)stats_of(stage->rig->service).pending - filled);
}

static void pump(const struct words *words)
{
	if (stage->queue)
		queue_executor_run_all(stage->queue);
}

void script_end_step(void)
{
	if (!holds)
		pump(NULL);
	holds = false;
}

static void advance(const struct words *words)
{
	pump(NULL);
	for (int64_t ms = 0; ms < words->number[0]; ms++) {
		rig_advance(stage->rig, MS);
		pump(NULL);
	}
}

static void drive(const struct words *words)
{
	rig_advance(stage->rig, (uint64_t)words->number[0] * MS);
}

static void pass(const struct words *words)
{
	uint64_t now_ns = rig_now(stage->rig) + (uint64_t)words->number[0] * MS;
	expect_eq(tw_clock_manual_set(stage->rig->clock, now_ns), 0);
}

/* As the tick thread would, beside a run. */
static void poll(const struct words *words)
{
	expect_ge(tw_service_advance(stage->rig->service, TW_NO_LIMIT), 0);
}

static void run_next(const struct words *words)
{
	expect_ne(queue_executor_run_next(stage->queue), -ENOENT);
}

static void give_back(const struct words *words)
{
	expect_eq(queue_executor_drop_next(stage->queue), 0);
}

static void say_waiting(const struct words *words)
{
	say("%zu wait", queue_executor_waiting(stage->queue));
}

static void hold(const struct words *words)
{
	holds = true;
}

static void refuse(const struct words *words)
{
	stage->queue->refuse = (size_t)words->number[0];
}

static void arm_faults(const struct words *words)
{
	faults_arm(0, true);
}

static void disarm_faults(const struct words *words)
{
	expect_eq(faults_disarm(), true);
}

static void expect_unasked(const struct words *words)
{
	expect_eq(faults_disarm(), false);
}

static void *play_without_memory(void *calls)
{
	faults_arm(0, true);
	play_calls(calls);
	faults_disarm();
	return NULL;
}

/* Arms inside the thread, whose start needs memory. */
static void play_poor(const struct words *words)
{
	pthread_t thread;
	expect_eq(pthread_create(&thread, NULL, play_without_memory, (void *)words->in_run), 0);
	expect_eq(pthread_join(thread, NULL), 0);
}

void *script_context(int64_t n)
{
	return n ? &contexts[n] : NULL;
}

static void set_context(const struct words *words)
{
	tw_context_set(script_context(words->number[0]));
}

static void say_context(const struct words *words)
{
	char *context = tw_context_get();
	say("context %d", context ? (int)(context - contexts) : 0);
}

static void say_mark(const struct words *words)
{
	say("-");
}

/* The stage was opened so. */
static void nothing_more(const struct words *words)
{
}

const struct verb script_verbs[] = {
    {"-", say_mark},
    {"given", nothing_more},
    {"context", say_context},
    {"set_context", set_context},
    {"advance", advance},
    {"drive", drive},
    {"pass", pass},
    {"poll", poll},
    {"next", run_next},
    {"give_back", give_back},
    {"pump", pump},
    {"waiting", say_waiting},
    {"hold", hold},
    {"refuse", refuse},
    {"fill", fill},
    {"empty", empty},
    {"schedule", schedule},
    {"close_service", close_service},
    {"destroy_service", destroy_service},
    {"pending", say_pending},
    {"no_memory", arm_faults},
    {"memory", disarm_faults},
    {"unasked", expect_unasked},
    {"poor", play_poor},
    {"stand", stand},
    {"begun", begun},
    {"let", let},
    {"beside", beside},
    {"joined", joined},
    {"pause", pause_here},
    {"at_sleep", at_sleep},
    {"queued", queued},
    {NULL, NULL},
};
