/* From nanoseconds to ticks: a multiplication and a shift, against a plain division. */
#include "test/support/random.h"
#include "test/support/rig.h"
#include "wheel/core/service.h"

TestSuite(clock_ticks, .timeout = 60);

static void check_span(const tw_service *service, uint64_t span_ns)
{
	uint64_t tick_ns = service->time.tick_ns, down = span_ns / tick_ns;
	expect_eq(tw__ticks_down(service, span_ns), down);
	if (span_ns <= UINT64_MAX - service->time.start_ns)
		expect_eq(tw__tick_of(service, service->time.start_ns + span_ns),
			  down + (span_ns % tick_ns != 0));
}

/* Where the division comes round, and where a multiplier that is rounded up is farthest off. */
static void check_around(const tw_service *service, uint64_t span_ns)
{
	check_span(service, span_ns);
	check_span(service, span_ns + 1);
	if (span_ns)
		check_span(service, span_ns - 1);
}

static void check_tick(uint64_t tick_ns, uint64_t *seed)
{
	struct tw_service_config config = rig_config();
	tw_service *service = NULL;
	config.clock = tw_clock_monotonic();
	config.tick_ns = tick_ns;
	expect_eq(tw_service_create(&service, &config), 0);
	for (unsigned bits = 0; bits < 64; bits++) {
		uint64_t span_ns = UINT64_C(1) << bits;
		check_around(service, span_ns);
		check_around(service, span_ns - span_ns % tick_ns);
		for (int i = 0; i < 20; i++) {
			uint64_t any_ns = span_ns | (random_next(seed) & (span_ns - 1));
			check_around(service, any_ns);
			check_around(service, any_ns - any_ns % tick_ns);
		}
	}
	check_span(service, UINT64_MAX);
	expect_eq(tw__tick_of(service, service->time.start_ns), 0);
	expect_eq(tw__tick_of(service, 0), 0);
	expect_eq(tw_service_destroy(service), 0);
}

Test(clock_ticks, are_those_of_a_division)
{
	const uint64_t odd[] = {50000,     50001,     65535,     65536,     65537,   100000,
				131072,    999999,    1000000,   1000001,   1048576, 16777216,
				536870911, 536870912, 999999937, 1000000000};
	uint64_t seed = 1;
	for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
		check_tick(odd[i], &seed);
	for (int i = 0; i < 50; i++)
		check_tick(50000 + random_below(&seed, 1000000000 - 50000), &seed);
}
