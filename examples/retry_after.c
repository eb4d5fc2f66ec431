/*
 * Retries that know why an attempt failed. Four clients ask a server that has bad moments:
 *
 *   404   is final: no retry changes it
 *   429   says when to come back (Retry-After): no earlier, no later
 *   500   is tried again after a delay that grows; full jitter spreads the clients
 *
 * retry.allow decides. The policy of the job keeps the rest: how many attempts, and which delay if
 * retry.allow does not choose one.
 */
#include <errno.h>
#include <stdio.h>
#include <tickwheel/layers.h>

enum { CLIENTS = 4, NOT_FOUND = -ENOENT, TOO_MANY = -EAGAIN, ERROR = -EIO };

#define RETRY_AFTER_NS (40 * (int64_t)TW_MILLISECOND)

struct client {
	const char *path;
	int answers[4]; /* of the server, in order; 0: it has worked */
	struct tw_job_result result;
	uint64_t failed_ns, waited_ns; /* before its second attempt */
};

static tw_service *service;

static int ask(void *arg, struct tw_job_run *run)
{
	struct client *c = arg;
	if (run->attempt == 2)
		c->waited_ns = tw_service_now(service) - c->failed_ns;
	c->failed_ns = tw_service_now(service);
	return run->attempt <= 4 ? c->answers[run->attempt - 1] : 0;
}

static bool allow(void *arg, tw_job job, int error, uint32_t attempt, int64_t *delay_ns)
{
	(void)arg, (void)job, (void)attempt;
	if (error == TOO_MANY)
		*delay_ns = RETRY_AFTER_NS;
	return error != NOT_FOUND;
}

static void done(void *arg, const struct tw_job_result *result)
{
	((struct client *)arg)->result = *result;
}

int main(void)
{
	static struct client clients[CLIENTS] = {
	    {.path = "/good", .answers = {0}},
	    {.path = "/gone", .answers = {NOT_FOUND}},
	    {.path = "/busy", .answers = {TOO_MANY}},
	    {.path = "/shaky", .answers = {ERROR, ERROR, ERROR}}};
	struct tw_limiter_config config = TW_INIT(tw_limiter_config);
	tw_limiter *limiter;
	config.max_concurrency = 2;
	if (tw_service_create(&service, NULL) < 0 ||
	    tw_limiter_create(&limiter, service, &config) < 0)
		return 1;
	for (int i = 0; i < CLIENTS; i++) {
		struct tw_limiter_task task = {
		    .size = sizeof task, .fn = ask, .arg = &clients[i], .done = done};
		task.retry = (struct tw_retry){.count = 5,
					       .delay_ns = 5 * TW_MILLISECOND,
					       .factor_x100 = 200,
					       .cap_ns = TW_SECOND,
					       .allow = allow,
					       .jitter = TW_RETRY_JITTER_FULL};
		if (tw_limiter_submit_task(limiter, &task, NULL) < 0)
			return 1;
	}
	tw_limiter_wait_idle(limiter, TW_FOREVER);
	struct tw_limiter_stats stats = TW_INIT(tw_limiter_stats);
	tw_limiter_stats(limiter, &stats);
	tw_limiter_destroy(limiter);
	tw_service_destroy(service);

	for (int i = 0; i < CLIENTS; i++)
		printf("%-6s %s after %u attempts\n", clients[i].path,
		       clients[i].result.status == TW_JOB_STATUS_SUCCEEDED ? "succeeded" : "failed",
		       (unsigned)clients[i].result.attempts);
	printf("%u retries in all\n", (unsigned)stats.retried);
	bool as_told = stats.retried == 4 && clients[0].result.attempts == 1 &&
		       clients[1].result.attempts == 1 && clients[2].result.attempts == 2 &&
		       clients[3].result.attempts == 4;
	bool in_time = clients[2].waited_ns >= (uint64_t)RETRY_AFTER_NS;
	return as_told && in_time && clients[1].result.status == TW_JOB_STATUS_FAILED ? 0 : 1;
}
