/* The kernel refuses membarrier later than at creation: nothing that was accepted is missed, and sleeping costs a tick at most. */
#include <errno.h>
#include <semaphore.h>

#include "test/support/faults.h"
#include "test/support/shot.h"
#include "wheel/core/service.h"

TestSuite(close_membarrier, .timeout = 60);

static atomic_int runs, releases;

static void count_run(void *arg)
{
	(void)arg;
	runs++;
}

static void count_release(void *arg, enum tw_fate fate)
{
	(void)arg, (void)fate;
	releases++;
}

static tw_service *open_manual(void)
{
	tw_service *service;
	struct tw_service_config cfg = {
	    .size = sizeof(cfg), .drive = TW_DRIVE_MANUAL, .executor = tw_executor_inline()};
	expect_eq(tw_service_create(&service, &cfg), 0);
	return service;
}

/* A thread that schedules once, and then does what it is told. */
enum deed { NOTHING, SCHEDULE, RESET, CANCEL, END };

struct producer {
	tw_service *service;
	tw_timer timer;
	enum deed deed;
	int answer;
	sem_t go, done;
	pthread_t thread;
};

static void *produce(void *arg)
{
	struct producer *p = arg;
	struct tw_task task = {.size = sizeof(task), .fn = count_run, .when_ns = HOUR, .release = count_release};
	p->answer = tw_schedule_task(p->service, &task, &p->timer);
	sem_post(&p->done);
	for (;;) {
		await(&p->go, 1);
		if (p->deed == SCHEDULE)
			p->answer = tw_schedule(p->service, HOUR, count_run, NULL, NULL);
		if (p->deed == RESET)
			p->answer = tw_reset(p->service, p->timer, HOUR);
		if (p->deed == CANCEL)
			p->answer = tw_cancel(p->service, p->timer);
		if (p->deed == END)
			return NULL;
		sem_post(&p->done);
	}
}

static void start(struct producer *p, tw_service *service)
{
	*p = (struct producer){.service = service};
	sem_init(&p->go, 0, 0);
	sem_init(&p->done, 0, 0);
	expect_eq(pthread_create(&p->thread, NULL, produce, p), 0);
	await(&p->done, 1);
	expect_eq(p->answer, 0);
}

static int tell(struct producer *p, enum deed deed)
{
	p->deed = deed;
	sem_post(&p->go);
	if (deed == END)
		pthread_join(p->thread, NULL);
	else
		await(&p->done, 1);
	return p->answer;
}

static tw_service *(*const openers[])(void) = {open_manual, NULL};

static tw_service *open_either(int which)
{
	return openers[which] ? openers[which]() : open_service(1);
}

/* ------------------------------------------------------------ close */

/* In time it closes, but cannot say so. A tick thread that has no processor may take longer to close than one call waits. */
static void close_in_vain(tw_service *service, enum tw_close_mode mode)
{
	do
		expect_eq(tw_service_close(service, mode, 50 * MS), -ETIMEDOUT);
	while (!tw_load_acquire(&service->phase.closed));
}

static void refused_at_close(int which, enum tw_close_mode mode, enum deed passes, int answer)
{
	tw_service *service = open_either(which);
	struct producer one, two;
	runs = releases = 0;
	start(&one, service);
	start(&two, service);
	faults_refuse_membarrier(true);
	close_in_vain(service, mode);
	tell(&two, NOTHING);
	expect_eq(tell(&one, passes), answer);
	expect_eq(tw_service_close(service, mode, 50 * MS), -ETIMEDOUT); /* the other has not passed */
	tell(&two, END);
	expect_eq(tw_service_close(service, mode, TW_FOREVER), 0);
	expect_eq(releases, 2);
	expect_eq(stats_of(service).pending, 0);
	faults_refuse_membarrier(false);
	if (passes != END)
		tell(&one, END);
	close_service(service);
}

Test(close_membarrier, refused_at_close_makes_it_wait_until_each_thread_has_called_or_ended)
{
	for (int which = 0; which <= 1; which++) {
		refused_at_close(which, TW_CLOSE_DROP, SCHEDULE, -ESHUTDOWN);
		refused_at_close(which, TW_CLOSE_DROP, RESET, -ESHUTDOWN);
		refused_at_close(which, TW_CLOSE_RUN, SCHEDULE, -ESHUTDOWN);
		expect_eq(runs, 2);
		refused_at_close(which, TW_CLOSE_DROP, END, 0);
	}
}

/* A drain drops at its timeout, and has a second then: all the same it must not say 0. */
Test(close_membarrier, refused_at_close_holds_for_a_drain)
{
	refused_at_close(1, TW_CLOSE_DRAIN, SCHEDULE, -ESHUTDOWN);
}

/* What is pending is settled at once; it is only the answer that waits. */
Test(close_membarrier, refused_at_close_settles_what_can_be_seen)
{
	tw_service *service = open_service(1);
	struct producer producer;
	runs = releases = 0;
	start(&producer, service);
	faults_refuse_membarrier(true);
	do /* a tick thread that has no processor is not waited for longer than a tenth of a second */
		expect_eq(tw_service_close(service, TW_CLOSE_DROP, 20 * MS), -ETIMEDOUT);
	while (releases == 0);
	expect_eq(releases, 1);
	faults_refuse_membarrier(false); /* and it may come back */
	expect_eq(tw_service_close(service, TW_CLOSE_DROP, TW_FOREVER), 0);
	tell(&producer, END);
	close_service(service);
}

/* Whoever destroys has seen to it that all other calls came before. */
Test(close_membarrier, refused_at_destroy_makes_it_wait_for_nobody)
{
	for (int which = 0; which <= 1; which++) {
		tw_service *service = open_either(which);
		struct producer producer;
		runs = releases = 0;
		start(&producer, service);
		faults_refuse_membarrier(true);
		expect_eq(tw_service_destroy(service), 0);
		expect_eq(releases, 1);
		faults_refuse_membarrier(false);
		tell(&producer, END);
	}
}

/* Only schedules and resets of others are waited for: not the closer's own thread, nor the service's. */
Test(close_membarrier, refused_at_close_makes_it_wait_for_none_of_its_own)
{
	for (int which = 0; which <= 1; which++) {
		tw_service *service = open_either(which);
		runs = 0;
		for (int i = 0; i < 100; i++)
			expect_eq(tw_schedule(service, 0, count_run, NULL, NULL), 0);
		while (which == 1 && runs < 100)
			sched_yield();
		faults_refuse_membarrier(true);
		expect_eq(tw_service_close(service, TW_CLOSE_RUN, TW_FOREVER), 0);
		expect_eq(runs, 100);
		faults_refuse_membarrier(false);
		close_service(service);
	}
}

/* ------------------------------------------------------------ sleeping */

/* Cannot be sure of having seen all, so it looks again each tick; and sleeps as it should when it can be sure again. */
Test(close_membarrier, refused_in_the_middle_costs_a_look_each_tick)
{
	tw_service *service = open_service(1);
	struct shot far = {.service = service};
	schedule_shot(&far, HOUR);
	faults_refuse_membarrier(true);
	sem_t done;
	sem_init(&done, 0, 0);
	struct shot near = {.service = service, .done = &done};
	schedule_shot(&near, 0); /* wakes it */
	uint64_t before = stats_of(service).wakeups;
	while (stats_of(service).wakeups < before + 50)
		sched_yield();
	await(&done, 1);
	expect_eq(near.runs, 1);
	struct shot later = {.service = service, .done = &done};
	schedule_shot(&later, 20 * MS);
	await(&done, 1);
	expect_eq(later.early, 0);
	faults_refuse_membarrier(false);
	expect_eq(tw_cancel(service, far.timer), TW_CANCELLED);
	close_service(service);
}
