/* A growing array, sorted when asked. */
#include <stdio.h>
#include <stdlib.h>

#include "examples/demo/sample.h"

void sample_add(struct sample *s, int64_t value_ns)
{
	if (s->count == s->room) {
		s->room = s->room > 0 ? 2 * s->room : 1024;
		s->values_ns = realloc(s->values_ns, s->room * sizeof(*s->values_ns));
		if (s->values_ns == NULL) {
			perror("demo");
			exit(2);
		}
	}
	s->values_ns[s->count++] = value_ns;
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

int64_t sample_percentile_ns(struct sample *s, unsigned percent)
{
	if (s->count == 0)
		return 0;
	qsort(s->values_ns, s->count, sizeof(*s->values_ns), compare);
	size_t rank = (s->count * percent + 99) / 100;
	return s->values_ns[rank > 0 ? rank - 1 : 0];
}

void sample_free(struct sample *s)
{
	free(s->values_ns);
	*s = (struct sample){0};
}
