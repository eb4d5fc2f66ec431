/*
 * A job each day, on a wall clock that the test sets forward and back, and that runs slow. The job
 * never runs before its time of the wall clock. The kernel takes the descriptor that tells of
 * steps. /
 */
#include <errno.h>
#include <sys/timerfd.h>
#include <time.h>

#include "support.h"

static int wall_clock(clockid_t id, struct timespec *out);
static time_t wall_time(time_t *out);
static ssize_t read_step(int fd, void *out, size_t size);

/* The wall clock, and the answer of the descriptor, are the test's. */
#define clock_gettime wall_clock
#define time wall_time
#define read read_step
#include "cron.h"
#undef read

enum { DAY = 86400, HOUR = 3600 };

static int64_t offset_ns;
static bool slow, was_set;
static int runs;
static struct cron cron;

/* 1 s at first; when `slow`, it loses a second in an hour. */
static int64_t wall_ns(void)
{
	int64_t since_ns = (int64_t)(tw_clock_now(hand) - 999 * TW_SECOND);
	return since_ns + offset_ns - (slow ? since_ns / HOUR : 0);
}

static int wall_clock(clockid_t id, struct timespec *out)
{
	CHECK(id == CLOCK_REALTIME);
	out->tv_sec = wall_ns() / (int64_t)TW_SECOND;
	out->tv_nsec = wall_ns() % (int64_t)TW_SECOND;
	return 0;
}

static time_t wall_time(time_t *out)
{
	CHECK(!out);
	return wall_ns() / (int64_t)TW_SECOND;
}

static ssize_t read_step(int fd, void *out, size_t size)
{
	CHECK(read(fd, out, size) < 0 && errno == EAGAIN); /* nobody sets the real clock */
	errno = was_set ? ECANCELED : EAGAIN;
	was_set = false;
	return -1;
}

static time_t at_three(time_t after)
{
	time_t three = after - after % DAY + 3 * HOUR;
	return three > after ? three : three + DAY;
}

static void job(void *arg)
{
	int64_t late_ns = wall_ns() - cron.due * (int64_t)TW_SECOND;
	CHECK(late_ns >= 0 && late_ns < 61 * (int64_t)TW_SECOND);
	runs += *(int *)arg;
}

/* The loop, a minute a turn. */
static void pass(tw_manual *queue, int seconds)
{
	for (int i = 0; i < seconds; i += 60) {
		advance(60 * TW_SECOND);
		while (tw_manual_pump(queue, TW_NO_LIMIT) > 0)
			;
	}
}

static void set_wall_clock(int by_seconds)
{
	offset_ns += by_seconds * (int64_t)TW_SECOND;
	was_set = true;
	cron_on_step(&cron);
	CHECK(!was_set);
}

int main(void)
{
	tw_service *service;
	tw_manual *queue;
	int one = 1;
	CHECK(tw_clock_manual_create(&hand, 1000 * TW_SECOND) == 0);
	CHECK(tw_manual_create(&queue, NULL) == 0);
	struct tw_service_config config = TW_INIT(tw_service_config);
	config.clock = hand;
	config.drive = TW_DRIVE_MANUAL;
	config.executor = tw_manual_executor(queue);
	CHECK(tw_service_create(&service, &config) == 0);
	cron = (struct cron){.service = service, .next = at_three, .fn = job, .arg = &one};
	CHECK(cron_start(&cron, tw_manual_executor(queue)) == 0);
	struct itimerspec set;
	CHECK(timerfd_gettime(cron.step_fd, &set) == 0 && set.it_value.tv_sec > DAY);

	pass(queue, 3 * DAY); /* midnight, and a second */
	CHECK(runs == 3);
	cron_on_step(&cron); /* EAGAIN */
	set_wall_clock(2 * HOUR);
	pass(queue, HOUR + 120); /* 03:02 */
	CHECK(runs == 4);
	set_wall_clock(-2 * HOUR); /* 01:02: three comes again */
	pass(queue, HOUR);
	CHECK(runs == 4);
	pass(queue, HOUR);
	CHECK(runs == 5);
	set_wall_clock(DAY); /* over 03:00: that day is skipped */
	pass(queue, DAY - 180);
	CHECK(runs == 5);
	pass(queue, 180);
	CHECK(runs == 6);
	slow = true; /* job checks that it is not early */
	pass(queue, 3 * DAY);
	CHECK(runs >= 8);

	cron_stop(&cron);
	CHECK(tw_service_destroy(service) == 0);
	CHECK(tw_manual_destroy(queue) == 0);
	return tw_clock_manual_destroy(hand);
}
