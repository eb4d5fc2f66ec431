/* A manual queue that runs the timers of a rig. */
#ifndef TEST_UNIT_MANUAL_MANUALS_H
#define TEST_UNIT_MANUAL_MANUALS_H

#include "test/support/rig.h"

static tw_manual *manual;
static struct rig rig;
static struct probe probes[400];
static int told;

static inline void tell(void *arg)
{
	told += *(int *)arg;
}

static inline void open_with(uint32_t queue)
{
	static int one = 1;
	struct tw_manual_config cfg = {
	    .size = sizeof cfg, .queue = queue, .notify = tell, .notify_arg = &one};
	expect_eq(tw_manual_create(&manual, &cfg), 0);
	struct tw_service_config config = rig_config();
	config.executor = tw_manual_executor(manual);
	rig_open(&rig, &config);
}

static inline void open_usual(void)
{
	open_with(0);
}

static inline void close_all(void)
{
	while (tw_manual_pump(manual, TW_NO_LIMIT) > 0) {
	}
	rig_close(&rig);
	expect_eq(tw_manual_destroy(manual), 0);
}

static inline void end_all(void)
{
	expect_in_fini();
	close_all();
}

/* That many runs wait in the queue now, beside those that waited. */
static inline void hand_over(int count)
{
	for (int i = 0; i < count; i++) {
		probes[i] = PROBE(&rig, i);
		probe_schedule_released(&probes[i], MS);
	}
	rig_advance(&rig, MS);
}

#endif
