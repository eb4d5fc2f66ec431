/*
 * What would wait for its own caller is refused in each kind of user code, of a service and of its
 * layers. The driver runs it here.
 */
#include <errno.h>

#include "test/support/rig_suite.h"
#include "test/support/user_code.h"

TestSuite(runs_inside_works, .init = open_rig, .fini = close_rig, .timeout = 30);

static int of_clock, of_validate, calls;

static void call(void)
{
	of_clock = tw_clock_manual_advance_by(rig.clock, MS);
	of_validate = tw_service_validate(rig.service, NULL, 0);
	calls++;
}

Test(runs_inside_works, the_clock_cannot_be_advanced_and_validate_is_busy)
{
	user_code_open(rig.service, call, NULL);
	for (int i = 0; i < USER_CODES; i++) {
		calls = 0;
		user_codes[i].begin();
		rig_advance(&rig, 10 * MS);
		expect_eq(calls, 1);
		expect_eq(of_clock, -EDEADLK);
		expect_eq(of_validate, -EBUSY);
		user_code_end();
	}
}

Test(runs_inside_works, the_clock_of_another_service_can_be_advanced)
{
	struct rig other;
	rig_open(&other, NULL);
	user_code_open(other.service, call, NULL);
	for (int i = 0; i < USER_CODES; i++) {
		calls = 0;
		user_codes[i].begin();
		rig_advance(&other, 10 * MS);
		expect_eq(calls, 1);
		expect_eq(of_clock, 0);
		expect_eq(rig_now(&rig), RIG_START_NS + (uint64_t)(i + 1) * MS);
		user_code_end();
	}
	rig_close(&other);
}
