/*
 * asap and frame: one batch source. What was armed before a flush is run by it, and nothing else.
 */
#include "test/support/action_script.h"
#include "test/support/action_suite.h"

TestSuite(action_batch, .fini = close_left, .timeout = 30);

static const struct script scripts[] = {
    /* flushes */
    {"shares one turn",
     {{"given asap caller; arm 0..3", "wanted"},
      {"flush", "run 0, run 1, run 2, run 3"},
      {"flush; stats flushes", "flushes=1"}}},
    {"leaves to the next what arrives during a flush",
     {{"given asap caller; arm 1 rearms=2; arm 2; flush", "wanted, run 1, wanted, run 2"},
      {"flush", "run 1, wanted"},
      {"flush", "run 1"}}},
    {"cancelling inside a flush pulls no later action in",
     {{"given asap caller; arm 1 rearms=1 {close 2}; arm 2 3; flush",
       "wanted, run 1, wanted, CANCELLED, run 3"},
      {"flush", "run 1, GONE"}}},
    {"calls its turn off when the last one is cancelled",
     {{"given frame caller; arm 0 1; close 0; close 1; stats turns_cancelled",
       "wanted, CANCELLED, unwanted, CANCELLED, turns_cancelled=1"},
      {"arm 2; flush", "wanted, run 2"}}},
    {"armed again before its turn, an action runs once and asks once",
     {{"given asap caller; arm 1; create 2; again 1 state=2; flush", "wanted, run 2"}}},
    {"one that fails closes its rest, spares the next, and the flush returns the failure",
     {{"given asap caller cancel_batch; create 3; arm 0; arm 1 fails=17 {again 3}; arm 2; flush",
       "wanted, run 0, run 1, wanted, 17"},
      {"state 0..3; flush", "IDLE, CLOSED, CLOSED, ARMED, run 3"},
      {"again 0; flush", "wanted, run 0"}}},
    {"is not flushed from inside itself",
     {{"given asap caller; arm 1 {flush}; flush", "wanted, run 1, EBUSY"}}},
    /* hosts */
    {"asap takes one turn of the executor",
     {{"given asap queued; arm 1 {close 2}; arm 2; arm 3 rearms=1; waiting; next; waiting; close 3",
       "1 wait, run 1, CANCELLED, run 3, 1 wait, CANCELLED"},
      {"stats turns_cancelled flushes",
       "turns_cancelled=1, flushes=1"}}}, /* its next turn finds that nobody wants it */
    {"asap on the inline executor runs in the next advance",
     {{"given asap; arm 2 delay=5; arm 1 rearms=1; -; drive 1", "-, run 1, @1 run 1"},
      {"drive 1", ""},
      {"drive 100", "@5 run 2"}}},
    {"destroyed before its turn, it lets go of the service when the turn has come",
     {{"given asap queued; arm 1; destroy_scheduler; destroy 1; destroy_scheduler; close_service 0",
       "EBUSY, CANCELLED, ETIMEDOUT"},
      {"close_service 0", ""}}},
    {"destroyed on an executor that refuses for good, it lets go of the service: by the driver",
     {{"given asap queued; refuse -1; arm 1; drive 2; destroy 1; destroy_scheduler; close_service "
       "0",
       "@2 CANCELLED"}}},
    {"frames that are past are left out",
     {{"given frame fps=100; arm 1 rearms=3 stays=35; drive 1000",
       "@10 run 1, @50 run 1, @90 run 1, @130 run 1"}}},
    {"the frame's timer is cancelled with the last action",
     {{"given frame; arm 0 1; pending; close 0; pending; close 1; pending",
       "1 pending, CANCELLED, 1 pending, CANCELLED, 0 pending"}}},
    {"the failure of a frame that nobody drives is told",
     {{"given frame cancel_batch; arm 0 fails=3; arm 1 2; drive 1000",
       "@17 run 0, failed 3 of 0 and closes 2"}}},
};

Test(action_batch, scripts)
{
	PLAY(&action_stage, NULL, scripts);
}

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
