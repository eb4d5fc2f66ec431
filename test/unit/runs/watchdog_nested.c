/*
 * Runs inside runs on one thread: tw_service_liveness shows each run to its own service. It leaves
 * out the runs below the last level that a thread shows.
 */
#include "test/support/liveness.h"
#include "test/support/rig.h"

TestSuite(runs_watchdog_nested, .timeout = 30);

struct nested {
	struct rig *outer, *inner;
	struct tw_service_liveness of_outer, of_inner;
};

static void look_inside(void *arg)
{
	struct nested *nested = arg;
	nested->of_outer.size = nested->of_inner.size = sizeof nested->of_outer;
	tw_service_liveness(nested->outer->service, &nested->of_outer);
	tw_service_liveness(nested->inner->service, &nested->of_inner);
}

/* Drives another service inline, whose callback looks. */
static void drive_the_other(void *arg)
{
	struct nested *nested = arg;
	tw_schedule(nested->inner->service, 0, look_inside, nested, NULL);
	rig_advance(nested->inner, MS);
}

Test(runs_watchdog_nested, a_run_inside_another_service_is_shown_to_both)
{
	struct rig outer, inner;
	tw_strand *strand;
	rig_open(&outer, NULL);
	rig_open(&inner, NULL);
	struct nested nested = {.outer = &outer, .inner = &inner};
	expect_eq(tw_strand_create(&strand, outer.service, NULL), 0);
	expect_eq(tw_strand_submit(strand, drive_the_other, &nested), 0);
	rig_advance(&outer, MS);
	expect_eq(nested.of_outer.running, 1);
	expect_eq(nested.of_outer.longest_kind, TW_RUN_KIND_STRAND_TASK);
	cr_assert(nested.of_outer.longest_fn == drive_the_other);
	expect_eq(nested.of_inner.running, 1);
	expect_eq(nested.of_inner.longest_kind, TW_RUN_KIND_TIMER);
	cr_assert(nested.of_inner.longest_fn == look_inside);
	expect_eq(liveness_of(outer.service).running + liveness_of(inner.service).running, 0);
	expect_eq(tw_strand_destroy(strand), 0);
	rig_close(&inner);
	rig_close(&outer);
}

/*
 * More runs inside one another than a thread shows: those below the last level are left out, and
 * all is well afterwards.
 */
enum { FLOORS = 6, SHOWN = 4 };

struct tower {
	int floor;
	uint64_t running[FLOORS];
};

static void climb(void *arg);

static void build_a_floor(struct tower *tower)
{
	struct rig rig;
	tw_strand *strand;
	rig_open(&rig, NULL);
	tw_strand_create(&strand, rig.service, NULL);
	void *floor[] = {tower, &rig};
	tw_strand_submit(strand, climb, floor);
	rig_advance(&rig, MS);
	tw_strand_destroy(strand);
	rig_close(&rig);
}

static void climb(void *arg)
{
	struct tower *tower = ((void **)arg)[0];
	struct rig *rig = ((void **)arg)[1];
	struct tw_service_liveness seen = {.size = sizeof seen};
	tw_service_liveness(rig->service, &seen);
	tower->running[tower->floor] = seen.running;
	if (++tower->floor < FLOORS)
		build_a_floor(tower);
}

Test(runs_watchdog_nested, runs_below_the_last_level_are_left_out)
{
	for (int round = 0; round < 2; round++) {
		struct tower tower = {0};
		build_a_floor(&tower);
		expect_eq(tower.floor, FLOORS);
		for (int i = 0; i < FLOORS; i++)
			expect_eq(tower.running[i], i < SHOWN);
	}
}
