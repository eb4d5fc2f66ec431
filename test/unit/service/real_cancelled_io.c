/* pthread_cancel: no call that touches a descriptor or a stream is a cancellation point. */
#include <stdio.h>

#include "test/support/cancelled.h"
#include "test/support/gates.h"
#include "test/support/rig.h"

TestSuite(service_real_cancelled_io, .timeout = 60);

static tw_manual *queue;
static tw_service *loop; /* driven by hand, on a queue with a descriptor */
static tw_strand *strand;
static tw_service *service; /* with a tick thread and a pool */
static atomic_int ran;

/* ------------------------------------------------------------------ descriptors */

static void open_loop(void)
{
	struct tw_service_config config = TW_INIT(tw_service_config);
	expect_eq(tw_manual_create(&queue, NULL), 0);
	expect_ge(tw_manual_fd(queue), 0);
	config.executor = tw_manual_executor(queue);
	config.drive = TW_DRIVE_MANUAL;
	expect_eq(tw_service_create(&loop, &config), 0);
	expect_ge(tw_service_fd(loop), 0);
	expect_eq(tw_strand_create(&strand, loop, NULL), 0);
}

static int submit(void)
{
	return tw_strand_submit(strand, count, &ran);
}

static int schedule_for_the_loop(void)
{
	return tw_schedule(loop, 0, count, &ran, NULL);
}

static int advance(void)
{
	return tw_service_advance(loop, TW_NO_LIMIT);
}

static int pump(void)
{
	return tw_manual_pump(queue, TW_NO_LIMIT);
}

static int destroy_queue(void)
{
	return tw_manual_destroy(queue);
}

Test(service_real_cancelled_io, no_write_or_read_of_a_descriptor, .init = open_loop)
{
	expect_eq(cancelled_in(submit), 0);
	expect_eq(cancelled_in(pump), 1);
	expect_eq(cancelled_in(schedule_for_the_loop), 0);
	while (cancelled_in(advance) == 0) {
	}
	expect_eq(cancelled_in(pump), 1);
	expect_eq(ran, 2);
	expect_eq(tw_strand_destroy(strand), 0);
	expect_eq(tw_service_destroy(loop), 0);
	expect_eq(cancelled_in(destroy_queue), 0);
}

/* ------------------------------------------------------------------ streams */

static FILE *out;

static int dump(void)
{
	return tw_service_dump(service, out);
}

static int print(void)
{
	struct tw_service_stats stats = stats_of(service);
	return tw_service_stats_print(&stats, out);
}

static int print_prometheus(void)
{
	return tw_service_stats_prometheus(service, out);
}

static int validate(void)
{
	return tw_service_validate(service, NULL, 0);
}

Test(service_real_cancelled_io, no_print_into_a_stream)
{
	out = tmpfile();
	cr_assert(out != NULL);
	setvbuf(out, NULL, _IONBF, 0); /* each part is a write */
	service = open_service(0);
	expect_eq(tw_schedule(service, HOUR, count, &ran, NULL), 0);
	expect_eq(cancelled_in(dump), 0);
	expect_eq(cancelled_in(print), 0);
	expect_eq(cancelled_in(print_prometheus), 0);
	expect_eq(cancelled_in(validate), 0);
	close_service(service);
	fclose(out);
}
