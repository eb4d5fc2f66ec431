/* Ticks and instants of a service, and its clock. */
#ifndef TW_WHEEL_TICKS_H
#define TW_WHEEL_TICKS_H

#include "wheel/core/service.h"
#include "wheel/wheel.h"
#include "mpsc/base/clock.h"

/*
 * Ticks in a span, rounded down: n / d for n < 2^62, by a multiplication whose high half is
 * shifted. With 2^s < d <= 2^(s+1) and m = (2^(64+s) + e) / d, e < d, it is n * m / 2^(64+s) = n/d
 * + (n * e) / (d * 2^(64+s)), and n * e < 2^(64+s): never the next integer (T. Granlund, P.
 * Montgomery: Division by invariant integers using multiplication, 1994). Each push waits for it.
 */
static inline uint64_t tw__ticks_in_range(const tw_service *service, uint64_t span_ns)
{
	return (uint64_t)((unsigned __int128)span_ns * service->time.tick_multiplier >> 64) >>
	       service->time.tick_shift;
}

static inline bool tw__is_in_range(uint64_t span_ns)
{
	return !(span_ns >> 62);
}

/* The same for all spans. */
static inline uint64_t tw__ticks_down(const tw_service *service, uint64_t span_ns)
{
	return tw_likely(tw__is_in_range(span_ns)) ? tw__ticks_in_range(service, span_ns)
						   : span_ns / service->time.tick_ns;
}

/* The first tick that is not before an instant; instants before the service's start are tick 0. */
static inline uint64_t tw__tick_of(const tw_service *service, uint64_t instant_ns)
{
	if (instant_ns <= service->time.start_ns)
		return 0;
	return tw__ticks_down(service, instant_ns - service->time.start_ns - 1) + 1;
}

static inline uint64_t tw__tick_ns(const tw_service *service, uint64_t tick)
{
	return service->time.start_ns + tick * service->time.tick_ns;
}

/*
 * The service's clock: where the clock may step back, no earlier than what the driver has turned
 * through.
 */
static inline uint64_t tw__clock_read(const tw_service *service)
{
	uint64_t now_ns = service->clock->ops->now(service->clock);
	if (tw_unlikely(service->time.steps)) {
		uint64_t turned_ns = tw__tick_ns(service, tw_load_relaxed(&service->gate.cursor));
		return now_ns > turned_ns ? now_ns : turned_ns;
	}
	return now_ns;
}

/* The same or a little later, and cheaper: for resets, which nothing corrects afterwards. */
static inline uint64_t tw__clock_read_fast(tw_service *service)
{
	if (tw_likely(service->counter.usable))
		return tw__counter_now(&service->counter);
	return tw__clock_read(service);
}

#endif
