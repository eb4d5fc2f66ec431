/*
 * Backends that never answer, more of them than calls may run: each call ends by its timeouts, and
 * a heartbeat of the same service goes on. Then backends that answer or hang up just as the timeout
 * passes. /
 */
#include <tickwheel/layers.h>

#undef TW_SECOND
#define TW_SECOND (50 * TW_MILLISECOND) /* the recipe's attempts may take two of these */
#include "limiter.h"
#include "support.h"

enum { SILENT = 16, RACES = 64, AT_ONCE = 8 };

static atomic_int beats, connected;
static _Atomic bool silent = true;

static void on_beat(void *arg)
{
	(void)arg;
	beats++;
}

/* Answers, or hangs up, about when the attempt's timeout passes. */
static void *answer(void *arg)
{
	int fd = (int)(intptr_t)arg;
	unsigned seed = (unsigned)fd * 7919u + (unsigned)connected;
	usleep(80000);
	jitter(&seed, 40000);
	if (seed & 256)
		(void)!send(fd, "!", 1, MSG_NOSIGNAL);
	close(fd);
	return NULL;
}

/* Waits until the call hangs up. */
static void *say_nothing(void *arg)
{
	int fd = (int)(intptr_t)arg;
	char byte;
	CHECK(recv(fd, &byte, 1, 0) == 0);
	close(fd);
	return NULL;
}

int backend_connect(void)
{
	int fds[2];
	pthread_t backend;
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
	CHECK(pthread_create(&backend, NULL, silent ? say_nothing : answer,
			     (void *)(intptr_t)fds[1]) == 0);
	pthread_detach(backend);
	connected++;
	return fds[0];
}

static void submit(tw_limiter *backend, struct request *requests, int n, tw_job *jobs)
{
	for (int i = 0; i < n; i++) {
		requests[i].socket = -1;
		pthread_mutex_init(&requests[i].lock, NULL);
		CHECK(backend_call(backend, &requests[i], &jobs[i]) == 0);
	}
}

int main(void)
{
	static struct request requests[SILENT + RACES];
	static tw_job jobs[SILENT + RACES];
	tw_service *service;
	tw_limiter *backend;
	tw_timer beat;
	CHECK(tw_service_create(&service, NULL) == 0);
	CHECK(backend_open(&backend, service) == 0);
	struct tw_period period = {.size = sizeof period,
				   .first_ns = 10 * TW_MILLISECOND,
				   .period_ns = 10 * TW_MILLISECOND};
	CHECK(tw_schedule_every(service, &period, on_beat, NULL, &beat) == 0);

	submit(backend, requests, SILENT, jobs);
	await_at_least(&connected, AT_ONCE); /* all that may run block; the heartbeat goes on */
	int before = beats;
	while (beats < before + 3)
		usleep(1000);
	for (int i = 0; i < SILENT; i++) {
		struct tw_job_result result;
		int r = tw_job_wait(backend, jobs[i], TW_FOREVER, &result);
		CHECK(r < 0 || result.status == TW_JOB_STATUS_TIMED_OUT); /* < 0: it is gone */
	}
	CHECK(tw_limiter_wait_idle(backend, TW_FOREVER) == 0);
	CHECK(connected == SILENT * 4); /* each of them was tried four times */

	silent = false;
	submit(backend, requests + SILENT, RACES, jobs + SILENT);
	CHECK(tw_limiter_wait_idle(backend, TW_FOREVER) == 0);
	tw_cancel_wait(service, beat, TW_FOREVER);
	CHECK(tw_limiter_close(backend, TW_CLOSE_DROP, TW_FOREVER) == 0);
	while (tw_limiter_destroy(backend) != 0)
		usleep(100);
	return tw_service_destroy(service);
}
