/*
 * All layers on one virtual clock: a small server. The workers accept requests, each connection's
 * strand handles them in order, and a limiter calls the backend. Timeouts are timers on the strand,
 * a scheduler writes the log when there is time, a semaphore bounds what is archived at a time, and
 * connections are closed in the middle of it all.
 */
#include <errno.h>
#include <string.h>

#include "test/support/rig.h"
#include "test/support/seeds.h"

TestSuite(sim_together, .timeout = 120);

enum { CONNECTIONS = 6, REQUESTS = 150, PERMITS = 4 };

enum stage { UNBORN, SENT, HANDLED, ANSWERED, TIMED_OUT, LOST };

struct connection {
	tw_strand *strand;
	bool open;
	int sent, handled; /* requests, in order */
};

struct request {
	struct connection *connection;
	enum stage stage;
	int turn; /* among its connection's */
	uint64_t handled_ns;
	tw_timer timeout;
	tw_job job;
	bool at_backend, settled;
	int turns, logged, archived, freed;
};

static struct {
	tw_sim *sim;
	tw_service *service;
	tw_limiter *limiter;
	tw_scheduler *scheduler;
	tw_semaphore *archive;
	struct connection connections[CONNECTIONS];
	struct request requests[REQUESTS];
	int at_backend, archiving, ends[LOST + 1];
	bool logging;
} p;

enum { TIMEOUT_MS = 30 };

static void note(char what, const struct request *r)
{
	tell_fact((uint64_t)what << 32 | (uint64_t)(r - p.requests));
}

static void come_to(struct request *r, enum stage stage)
{
	note((char)('0' + stage), r);
	r->stage = stage;
	p.ends[stage]++;
}

/* ------------------------------------------------------------------- the log */

static void free_archive(void *arg)
{
	struct request *r = arg;
	r->freed++;
	p.archiving--;
	sim_eq(tw_semaphore_release(p.archive, 1), 0);
}

static void archive(void *arg)
{
	struct request *r = arg;
	r->archived++;
	sim_assert(++p.archiving <= PERMITS, "more holders than permits");
	note('a', r);
	sim_eq(tw_schedule(p.service, drawn_below(5 * MS), free_archive, r, NULL), 0);
}

static int write_log(struct tw_turn *turn, void *arg)
{
	struct request *r = arg;
	sim_assert(!p.logging, "two turns at once");
	p.logging = true;
	sim_assert(r->stage >= ANSWERED, "logged before its end");
	if (drawn_below(3) == 0)
		tw_sim_spend(p.sim, drawn_below(2 * MS));
	r->turns++;
	note('l', r);
	p.logging = false;
	return drawn_below(3) ? TW_TURN_DONE : TW_TURN_AGAIN;
}

static void log_done(void *arg, enum tw_fate fate, int result)
{
	struct request *r = arg;
	sim_assert(fate == TW_FATE_FIRED && result == 0 && r->turns > 0, "fate of a task");
	sim_assert(++r->logged == 1, "a task ended twice");
	sim_eq(tw_semaphore_acquire_async(p.archive, 1, archive, r, NULL), 0);
}

static void end_request(struct request *r, enum stage stage)
{
	come_to(r, stage);
	struct tw_scheduler_task task = {.size = sizeof task,
					 .fn = write_log,
					 .arg = r,
					 .done = log_done,
					 .priority = (enum tw_priority)(1 + drawn_below(5)),
					 .delay_ns = drawn_below(2) * drawn_below(30 * MS)};
	sim_eq(tw_scheduler_submit_task(p.scheduler, &task, NULL), 0);
}

/* --------------------------------------------------------------- the backend */

static void backend_answers(void *arg)
{
	struct request *r = arg;
	p.at_backend--;
	r->at_backend = false;
	int answer = tw_job_complete(p.limiter, r->job, drawn_below(6) ? 0 : -EIO, NULL);
	sim_assert(answer == 0 || answer == TW_JOB_LATE, "an attempt was completed already");
}

static int call_backend(void *arg, struct tw_job_run *run)
{
	struct request *r = arg;
	sim_assert(++p.at_backend <= PERMITS, "more calls at once than permits");
	sim_assert(!r->at_backend, "an attempt beside another");
	r->at_backend = true;
	r->job = run->job;
	sim_eq(tw_schedule(p.service, drawn_below(20 * MS), backend_answers, r, NULL), 0);
	return TW_JOB_PENDING;
}

/* ---------------------------------------------------------------- on a strand */

static void check_strand(const struct request *r)
{
	sim_assert(tw_strand_current() == r->connection->strand, "not on its strand");
	sim_assert(r->connection->open, "ran after its strand was closed");
}

static void answer(void *arg)
{
	struct request *r = arg;
	check_strand(r);
	if (r->stage != HANDLED)
		return; /* it has timed out */
	sim_assert(tw_service_now(tw_sim_service(p.sim)) >= r->handled_ns,
		   "an answer from the future");
	int outcome = tw_cancel(p.service, r->timeout);
	sim_assert(outcome == TW_CANCELLED,
		   "the timeout of a request that has not timed out is there");
	end_request(r, ANSWERED);
}

static void time_out(void *arg)
{
	struct request *r = arg;
	check_strand(r);
	sim_assert(r->stage == HANDLED, "timed out after its end");
	sim_assert(tw_service_now(tw_sim_service(p.sim)) >= r->handled_ns + TIMEOUT_MS * MS,
		   "timed out early");
	tw_job_cancel(p.limiter, r->job);
	end_request(r, TIMED_OUT);
}

static void job_settled(void *arg, const struct tw_job_result *result)
{
	struct request *r = arg;
	sim_assert(!r->settled, "a job settled twice");
	r->settled = true;
	if (result->status != TW_JOB_STATUS_SUCCEEDED)
		return;
	int sent = tw_strand_submit(r->connection->strand, answer, r);
	sim_eq(sent, r->connection->open ? 0 : -ESHUTDOWN);
}

static void handle(void *arg)
{
	struct request *r = arg;
	check_strand(r);
	sim_eq(r->turn, r->connection->handled++);
	r->handled_ns = tw_service_now(tw_sim_service(p.sim));
	come_to(r, HANDLED);
	struct tw_task timeout = {.size = sizeof timeout,
				  .fn = time_out,
				  .arg = r,
				  .when_ns = TIMEOUT_MS * MS,
				  .executor = tw_strand_executor(r->connection->strand)};
	sim_eq(tw_schedule_task(p.service, &timeout, &r->timeout), 0);
	struct tw_limiter_task job = {
	    .size = sizeof job,
	    .fn = call_backend,
	    .arg = r,
	    .done = job_settled,
	    .flags = TW_LIMITER_TASK_ASYNC,
	    .priority = (int32_t)drawn_below(3),
	    .retry = {.count = (uint32_t)drawn_below(3),
		      .delay_ns = drawn_below(10 * MS),
		      .jitter = TW_RETRY_JITTER_FULL}}; /* from the simulation's seed, too */
	sim_eq(tw_limiter_submit_task(p.limiter, &job, &r->job), 0);
}

/* ---------------------------------------------------------------- the workers */

static void lose(struct connection *connection)
{
	connection->open = false;
	sim_eq(tw_strand_close(connection->strand, 0), 0);
	for (struct request *r = p.requests; r < p.requests + REQUESTS; r++) {
		if (r->connection != connection || (r->stage != SENT && r->stage != HANDLED))
			continue;
		if (r->stage == HANDLED) {
			tw_cancel(p.service, r->timeout);
			tw_job_cancel(p.limiter, r->job);
		}
		end_request(r, LOST);
	}
}

/* A request has come in on whichever worker: there its turn on its connection is decided. */
static void accept_one(void *arg)
{
	struct request *r = arg;
	struct connection *connection = &p.connections[drawn_below(CONNECTIONS)];
	r->connection = connection;
	r->turn = connection->sent;
	if (drawn_below(60) == 0 && connection->open)
		lose(connection);
	int sent = tw_strand_submit(connection->strand, handle, r);
	sim_eq(sent, connection->open ? 0 : -ESHUTDOWN);
	connection->sent += sent == 0;
	if (sent == 0)
		come_to(r, SENT);
	else
		end_request(r, LOST);
}

/* ------------------------------------------------------------------ a program */

static void open_program(uint64_t seed)
{
	uint64_t random = seed;
	struct tw_sim_config cfg = {
	    .size = sizeof cfg, .seed = seed, .workers = 1 + (uint32_t)random_below(&random, 4)};
	cfg.max_late_ns = random_below(&random, 2) * random_below(&random, 4 * MS);
	cfg.refuse_percent = (uint32_t)(random_below(&random, 2) * random_below(&random, 40));
	memset(&p, 0, sizeof p);
	sim_eq(tw_sim_create(&p.sim, &cfg), 0);
	p.service = tw_sim_service(p.sim);
	struct tw_limiter_config limiter = {.size = sizeof limiter, .max_concurrency = PERMITS};
	sim_eq(tw_limiter_create(&p.limiter, p.service, &limiter), 0);
	sim_eq(tw_limiter_set_paused(p.limiter, false), 0);
	sim_eq(tw_scheduler_create(&p.scheduler, p.service, NULL), 0);
	sim_eq(tw_semaphore_create(&p.archive, p.service, NULL, PERMITS), 0);
	for (struct connection *c = p.connections; c < p.connections + CONNECTIONS; c++) {
		sim_eq(tw_strand_create(&c->strand, p.service, NULL), 0);
		c->open = true;
	}
}

static int ends_seen[LOST + 1];

static void check_ends(void)
{
	for (const struct request *r = p.requests; r < p.requests + REQUESTS; r++) {
		sim_assert(r->stage >= ANSWERED, "a request has not come to its end");
		sim_assert(r->logged == 1 && r->archived == 1 && r->freed == 1, "not archived");
		sim_assert(!r->at_backend, "the backend still works for it");
	}
	sim_eq(p.ends[ANSWERED] + p.ends[TIMED_OUT] + p.ends[LOST], REQUESTS);
	for (int stage = 0; stage <= LOST; stage++)
		ends_seen[stage] += p.ends[stage];
}

static void close_program(void)
{
	for (struct connection *c = p.connections; c < p.connections + CONNECTIONS; c++)
		sim_eq(tw_strand_destroy(c->strand), 0);
	sim_eq(tw_limiter_destroy(p.limiter), 0);
	sim_eq(tw_scheduler_destroy(p.scheduler), 0);
	sim_eq(tw_semaphore_destroy(p.archive), 0);
	sim_eq(tw_sim_destroy(p.sim), 0);
}

static uint64_t run_program(uint64_t seed)
{
	open_program(seed);
	for (struct request *r = p.requests; r < p.requests + REQUESTS; r++) {
		sim_eq(tw_schedule(p.service, 0, accept_one, r, NULL), 0);
		sim_assert(tw_sim_run(p.sim, drawn_below(3) * drawn_below(4 * MS)) >= 0, "run");
	}
	sim_eq(tw_sim_run(p.sim, 3600 * SECOND), 0);
	check_ends();
	uint64_t trace = trace_with_facts(p.sim);
	close_program();
	return trace;
}

Test(sim_together, all_layers_keep_their_promises_and_the_same_seed_goes_the_same_way)
{
	for_each_seed_twice(60, run_program);
	for (int stage = ANSWERED; stage <= LOST; stage++)
		expect_gt(ends_seen[stage], 0);
}
