/*
 * asap and frame: one batch source. What was armed before a flush is run by it, and nothing else.
 */
#include "test/support/action_suite.h"

TestSuite(action_batch, .fini = close_left, .timeout = 30);

Test(action_batch, frames_come_at_their_instants_without_drift)
{
	open_on(TW_ACTION_KIND_FRAME);
	struct work work = {.log = &notes, .id = 1, .rearms = 1199};
	arm(&work, 0);
	rig_advance(&rig, 30 * SECOND);
	expect_eq(notes.count, 1200);
	for (int i = 0; i < notes.count; i++) {
		uint64_t frame_ns = RIG_START_NS + (uint64_t)(i + 1) * SECOND / 60;
		expect_ge(notes.at_ns[i], frame_ns);
		expect_le(notes.at_ns[i], frame_ns + MS);
	}
}
