/*
 * G6 where the tick thread falls asleep between two schedules of one thread; its publishing is
 * played by hand (schedule.c, drain.c).
 */
#include "wheel/core/service.h"
#include "wheel/driver/driver.h"
#include "test/support/rig_suite.h"

TestSuite(driver_order_of_bases, .init = open_rig, .fini = close_rig, .timeout = 30);

static void publish(tw_service *service, uint64_t flags, uint64_t base_ns)
{
	uint64_t replaced = tw__gate_sequence(tw_load_relaxed(&service->gate.word));
	service->driver->bases.bases_ns[(replaced + 1) % TW__EPOCHS] = base_ns;
	tw_store_relaxed(&service->gate.base_ns, base_ns);
	tw__gate_publish(&service->gate, flags | TW__GATE_ACCEPTING);
	service->driver->bases.replaced_ns[replaced % TW__EPOCHS] = base_ns - service->time.tick_ns;
}

/*
 * The first counts from the end of a tick that is published for sleep in that moment; the second
 * reads the clock a bit later.
 */
Test(driver_order_of_bases, a_schedule_asleep_is_not_ahead_of_one_that_saw_the_driver_awake)
{
	rig.service->time.published = true;
	struct probe first = PROBE(&rig, 1), second = PROBE(&rig, 2);
	rig_advance(&rig, 9 * MS + 900000);
	publish(rig.service, TW__GATE_OPEN, rig_now(&rig) + rig.tick_ns);
	rig_advance(&rig, 300000); /* into the next tick */
	uint64_t base_ns = rig_now(&rig) + rig.tick_ns;
	tw_store_relaxed(&rig.service->gate.base_ns, base_ns); /* half of the next publishing */
	probe_schedule(&first, 40 * MS);
	publish(rig.service, 0, base_ns);
	probe_schedule(&second, 40 * MS);
	rig_advance(&rig, SECOND);
	expect_eq(rig.ran, 2);
	expect_ids_ascend(&rig);
}
