/*
 * Adaptive concurrency: nobody knows how many calls a backend stands, and the number changes. A
 * controller looks at the time that calls take, and sets the limit:
 *
 *   no slower than usual   one more at a time (only if the limit was in the way)
 *   SLOWER times as slow   a tenth fewer: the backend queues what it gets
 *
 * "Usual" is the shortest time of late. Every five seconds the limit is halved, and the usual time
 * measured anew: without that, calls that are all slow would become the usual ones.
 *
 * The policy needs the hook `settled`, a periodic timer and tw_limiter_set_max_concurrency. Played
 * on a virtual clock against a backend that does 12 calls side by side, and from 20 s on only 4.
 */
#include <stdio.h>
#include <tickwheel.h>

#define LOOK_EVERY_NS (100 * TW_MILLISECOND)

enum { SLOWER = 2, LEAST = 1, MOST = 64, FORGET_AFTER = 50 /* looks */ };

struct controller {
	tw_limiter *limiter;
	uint32_t limit;
	uint64_t usual_ns;
	uint64_t sum_ns, calls; /* since the last look */
	unsigned looks;
};

/* ----------------------------------------------------------------- the policy */

/* Events and timer run on one executor here. With several workers, give the controller a lock. */
static void controller_event(void *arg, const struct tw_limiter_event *event)
{
	struct controller *c = arg;
	if (event->kind != TW_LIMITER_EVENT_SETTLED)
		return;
	c->sum_ns += event->result->run_ns;
	c->calls++;
	if (event->result->run_ns < c->usual_ns)
		c->usual_ns = event->result->run_ns;
}

static bool limit_was_in_the_way(struct controller *c)
{
	struct tw_limiter_stats stats = TW_INIT(tw_limiter_stats);
	return tw_limiter_stats(c->limiter, &stats) == 0 && stats.pending > 0;
}

static void controller_look(void *arg)
{
	struct controller *c = arg;
	uint64_t mean_ns = c->calls ? c->sum_ns / c->calls : 0;
	uint32_t next = c->limit;
	if (++c->looks % FORGET_AFTER == 0) {
		c->usual_ns = UINT64_MAX;
		next /= 2;
	} else if (mean_ns > SLOWER * c->usual_ns)
		next -= (next + 9) / 10;
	else if (mean_ns && limit_was_in_the_way(c))
		next++;
	next = next < LEAST ? LEAST : next > MOST ? MOST : next;
	if (next != c->limit && tw_limiter_set_max_concurrency(c->limiter, next) == 0)
		c->limit = next;
	c->sum_ns = c->calls = 0;
}

/* ------------------------------------------------------------------ the play */

enum { CALL_MS = 10 };

static tw_sim *sim;
static tw_service *service;
static struct controller controller = {.limit = 2, .usual_ns = UINT64_MAX};
static unsigned capacity = 12, inside, answered;

struct call {
	tw_job job;
};
static struct call calls[1 << 16];

static void on_answer(void *arg)
{
	inside--;
	answered++;
	tw_job_complete(controller.limiter, ((struct call *)arg)->job, 0, NULL);
}

/* What is beyond the capacity slows all calls down. */
static int ask_backend(void *arg, struct tw_job_run *run)
{
	struct call *call = arg;
	call->job = run->job;
	inside++;
	uint64_t load_percent = inside > capacity ? 100 * inside / capacity : 100;
	uint64_t takes_ns = CALL_MS * TW_MILLISECOND * load_percent / 100;
	return tw_schedule(service, takes_ns, on_answer, call, NULL) < 0 ? -1 : TW_JOB_PENDING;
}

/* More calls come than the backend stands. */
static void on_request(void *arg)
{
	static unsigned n;
	struct tw_limiter_task task = TW_INIT(tw_limiter_task);
	(void)arg;
	task.fn = ask_backend;
	task.arg = &calls[n++ % (sizeof calls / sizeof calls[0])];
	task.flags = TW_LIMITER_TASK_ASYNC;
	tw_limiter_submit_task(controller.limiter, &task, NULL); /* refused while 200 wait */
}

static void run_and_tell(const char *what, uint64_t ns)
{
	unsigned before = answered;
	tw_sim_run_for(sim, ns);
	printf("%s: limit %u, %u calls a second\n", what, controller.limit,
	       (unsigned)((answered - before) * TW_SECOND / ns));
}

int main(void)
{
	struct tw_sim_config play = TW_INIT(tw_sim_config);
	struct tw_limiter_config config = TW_INIT(tw_limiter_config);
	struct tw_period look = TW_INIT(tw_period), request = TW_INIT(tw_period);
	tw_timer looks, requests;
	look.period_ns = LOOK_EVERY_NS;
	request.period_ns = TW_MILLISECOND / 2;
	request.missed = TW_MISSED_BURST;
	config.max_concurrency = controller.limit;
	config.max_pending = 200;
	config.flags = TW_LIMITER_NONBLOCKING;
	config.event = controller_event;
	config.event_arg = &controller;
	if (tw_sim_create(&sim, &play) < 0)
		return 1;
	service = tw_sim_service(sim);
	if (tw_limiter_create(&controller.limiter, service, &config) < 0 ||
	    tw_schedule_every(service, &look, controller_look, &controller, &looks) < 0 ||
	    tw_schedule_every(service, &request, on_request, NULL, &requests) < 0)
		return 1;
	run_and_tell("at first   ", TW_SECOND);
	run_and_tell("capacity 12", 19 * TW_SECOND);
	uint32_t high = controller.limit;
	capacity = 4;
	run_and_tell("changes    ", 10 * TW_SECOND);
	run_and_tell("capacity 4 ", 10 * TW_SECOND);
	uint32_t low = controller.limit;

	tw_cancel(service, looks);
	tw_cancel(service, requests);
	tw_limiter_close(controller.limiter, TW_CLOSE_DROP, 0);
	tw_sim_run_for(sim, TW_SECOND);
	tw_limiter_destroy(controller.limiter);
	tw_sim_destroy(sim);
	return high >= 12 && high <= 30 && low >= 4 && low <= 12 ? 0 : 1;
}
