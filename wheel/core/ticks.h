/* Ticks and instants of a service, and its clock. */
#ifndef TW_WHEEL_TICKS_H
#define TW_WHEEL_TICKS_H

#include "wheel/core/service.h"
#include "wheel/wheel.h"
#include "wheel/base/clock.h"

/*
 * Ticks in a span, rounded down: n / d for n < 2^62, by a multiplication whose high half is shifted. With 2^s < d <= 2^(s+1) and
 * m = (2^(64+s) + e) / d, e < d, it is n * m / 2^(64+s) = n/d + (n * e) / (d * 2^(64+s)), and n * e < 2^(64+s): never the next integer (T. Granlund,
 * P. Montgomery: Division by invariant integers using multiplication, 1994). Each push waits for it.
 */
static inline uint64_t tw__ticks_in_range(const tw_service *service, uint64_t span_ns)
{
	return (uint64_t)((unsigned __int128)span_ns * service->time.tick_multiplier >> 64) >> service->time.tick_shift;
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
 * The cursor: the last tick that was turned through. A look at it also tells whether the driver leaps, which is when the cursor
 * is to go on by TW__NEAR ticks or more (leap.c). Until the leap is over, deadlines are written whole (word.h, LEAP1).
 */
#define TW__LEAPING (UINT64_C(1) << 63)

static inline uint64_t tw__cursor_look(const tw_service *service)
{
	return tw_load_relaxed(&service->gate.cursor);
}

static inline uint64_t tw__cursor_of(uint64_t look)
{
	return look & ~TW__LEAPING;
}

static inline uint64_t tw__cursor(const tw_service *service)
{
	return tw__cursor_of(tw__cursor_look(service));
}

/* Whether a deadline may be written into a word. Else it is kept whole. */
static inline bool tw__is_near(uint64_t look, uint64_t tick)
{
	return !(look & TW__LEAPING) && tick < look + TW__NEAR;
}

/*
 * After a near word, and its entry if it has one, was published: whether the driver has leapt since that look, or is about to.
 * Then the word may be misread (tw__write_whole).
 */
static inline bool tw__is_overtaken(const tw_service *service, uint64_t look)
{
	tw_compiler_barrier();
	uint64_t now = tw_load_seq_cst(&service->gate.cursor); /* LEAP1 */
	return tw_unlikely(now - look >= TW__NEAR);            /* also while the driver leaps */
}

/* The service's clock: where the clock may step back, no earlier than what the driver has turned through. */
static inline uint64_t tw__clock_read(const tw_service *service)
{
	uint64_t now_ns = service->clock->ops->now(service->clock);
	if (tw_unlikely(service->time.steps)) {
		uint64_t turned_ns = tw__tick_ns(service, tw__cursor(service));
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

/* The tick to write into a word: one long past is as good as the cursor's, and cannot be taken for the future. */
static inline uint64_t tw__tick_to_write(const tw_service *service, uint64_t look, uint64_t deadline_ns)
{
	uint64_t tick = tw__tick_of(service, deadline_ns), cursor = tw__cursor_of(look);
	return tick + TW__NEAR < cursor ? cursor : tick;
}

/* The tick of an armed word, by any thread. False: the word has changed; *word is what it is now. */
static inline bool tw__deadline_of(tw_service *service, uint32_t slot, uint64_t *word, uint64_t *tick)
{
	if (tw_unlikely(tw__word_beyond(*word)))
		return tw__far_tick(&service->slots, slot, word, tick);
	*tick = tw__word_deadline(*word, tw__cursor(service)); /* WORD7 */
	return true;
}

#endif
