/*
 * A buffer that many writers share is flushed when the first of its writes must be on disk. One
 * timer does it: each write moves the timer to its own deadline, but only if that is earlier. The
 * clock is moved by hand, so the program takes no time.
 */
#include <errno.h>
#include <stdio.h>

#include "tickwheel.h"

struct buffer {
	tw_service *service;
	tw_timer flush;
	int writes, flushes;
};

static int now_ms(const struct buffer *b)
{
	return (int)(tw_service_now(b->service) / TW_MILLISECOND);
}

static void flush(void *arg)
{
	struct buffer *b = arg;
	printf("%3d ms: flush of %d writes\n", now_ms(b), b->writes);
	b->writes = 0;
	b->flushes++;
}

/* 0, or an error of the timer. */
static int buffer_write(struct buffer *b, uint64_t within_ns)
{
	int r = tw_reset_earlier(b->service, b->flush, within_ns);
	if (r == -ENOENT) /* the first write since a flush */
		r = tw_schedule(b->service, within_ns, flush, b, &b->flush);
	const char *effect = r == TW_RESET_KEPT ? "the flush comes early enough" : "sets the flush";
	int within_ms = (int)(within_ns / TW_MILLISECOND);
	printf("%3d ms: write, within %3d ms: %s\n", now_ms(b), within_ms, effect);
	b->writes++;
	return r < 0 ? r : 0;
}

int main(void)
{
	static const struct {
		uint64_t at_ms, within_ms;
	} writes[] = {{0, 200}, {10, 500}, {20, 50}, {30, 60}, {90, 40}, {100, 5}};
	struct buffer b = {0};
	tw_clock *clock;
	if (tw_clock_manual_create(&clock, 0) != 0)
		return 1;
	struct tw_service_config config = TW_INIT(tw_service_config);
	config.clock = clock;
	config.drive = TW_DRIVE_MANUAL; /* moving the clock then runs what is due */
	config.executor = tw_executor_inline();
	if (tw_service_create(&b.service, &config) != 0)
		return 1;
	int r = 0;
	for (size_t i = 0; i < sizeof writes / sizeof writes[0] && r == 0; i++) {
		tw_clock_manual_advance_by(clock,
					   writes[i].at_ms * TW_MILLISECOND - tw_clock_now(clock));
		r = buffer_write(&b, writes[i].within_ms * TW_MILLISECOND);
	}
	tw_clock_manual_advance_by(clock, TW_SECOND);
	tw_service_destroy(b.service);
	tw_clock_manual_destroy(clock);
	return r == 0 && b.flushes == 2 && b.writes == 0 ? 0 : 1;
}
