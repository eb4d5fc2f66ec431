/* Measured durations, all of them kept: percentiles are exact. */
#ifndef EXAMPLES_DEMO_SAMPLE_H
#define EXAMPLES_DEMO_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

struct sample {
	int64_t *values_ns;
	size_t count, room;
};

/* Ends the program if memory is out: a verdict needs all values. */
void sample_add(struct sample *s, int64_t value_ns);

/* 0: the smallest, 50: the median, 100: the largest. 0 if there is none. */
int64_t sample_percentile_ns(struct sample *s, unsigned percent);
void sample_free(struct sample *s);

#endif
