/* What all subjects share: the list of them, memory, and the loop that drives the bare ones. */
#include <stdlib.h>
#include <string.h>

#include "bench/measure.h"
#include "bench/subject.h"

const struct subject *const all_subjects[] = {&subject_tickwheel,
					      &subject_tickwheel_at,
					      &subject_heap_mutex,
					      &subject_heap_bare,
					      &subject_wheel_bare,
					      &subject_limit,
					      NULL};

const struct subject *subject_find(const char *name)
{
	for (const struct subject *const *s = all_subjects; *s; s++)
		if (strcmp((*s)->name, name) == 0)
			return *s;
	return NULL;
}

void *touched_array(size_t count, size_t size)
{
	const size_t line = 64;
	size_t bytes = (count * size + line - 1) / line * line;
	void *memory = aligned_alloc(line, bytes ? bytes : line);
	if (memory)
		memset(memory, 0, bytes);
	return memory;
}

/* Loops sleep in whole ticks, as those on epoll do: the fewest turns, and so the best case of a bare subject. */
static uint64_t end_of_tick_ns(uint64_t at_ns)
{
	return at_ns > UINT64_MAX - TICK_NS ? at_ns : (at_ns + TICK_NS - 1) / TICK_NS * TICK_NS;
}

uint64_t drive_until(const struct subject *subject, void *self, uint64_t end_ns)
{
	uint64_t turns = 0;
	if (!subject->next_turn_ns) {
		sleep_until_ns(end_ns);
		return turns;
	}
	for (;;) {
		uint64_t now = now_ns();
		subject->turn(self, 0, now);
		if (now >= end_ns)
			return turns;
		uint64_t next = end_of_tick_ns(subject->next_turn_ns(self));
		turns += next < end_ns;
		sleep_until_ns(next < end_ns ? next : end_ns);
	}
}
