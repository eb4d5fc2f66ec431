/* Shots, and the services that they are for. */
#include "shot.h"
#include "test/support/current.h"

#include <time.h>

void shoot(void *arg)
{
	struct shot *shot = arg;
	if (tw_service_now(shot->service) < shot->due_ns && !current_run().closing)
		atomic_fetch_add(&shot->early, 1);
	atomic_fetch_add(&shot->runs, 1);
	if (shot->done)
		sem_post(shot->done);
}

void await(sem_t *semaphore, size_t times)
{
	for (size_t i = 0; i < times; i++)
		while (sem_wait(semaphore) != 0)
			;
}

void schedule_shot(struct shot *shot, uint64_t delay_ns)
{
	shot->due_ns = tw_service_now(shot->service) + delay_ns;
	expect_eq(tw_schedule(shot->service, delay_ns, shoot, shot, &shot->timer), 0);
}

void await_quiet(tw_service *service)
{
	const struct timespec quiet = {.tv_nsec = 300 * MS};
	uint64_t before;
	do {
		before = stats_of(service).wakeups;
		nanosleep(&quiet, NULL);
	} while (stats_of(service).wakeups != before);
}

tw_service *open_service(uint32_t workers)
{
	struct tw_service_config cfg = {
	    .size = sizeof(cfg), .workers = workers, .max_workers = workers};
	tw_service *service = NULL;
	expect_eq(tw_service_create(&service, &cfg), 0);
	return service;
}

void close_service(tw_service *service)
{
	expect_eq(tw_service_close(service, TW_CLOSE_DROP, TW_FOREVER), 0);
	expect_sound(service);
	expect_eq(tw_service_destroy(service), 0);
}
