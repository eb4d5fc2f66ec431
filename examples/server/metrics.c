/*
 * The library writes the page: counters, gauges and histograms, with the names of what runs as
 * labels.
 */
#include <stdio.h>
#include <stdlib.h>

#include "examples/server/metrics.h"

bool metrics(tw_service *service, char **text, size_t *length)
{
	FILE *out = open_memstream(text, length);
	if (out == NULL)
		return false;
	bool written = tw_service_stats_prometheus(service, out) == 0;
	if (fclose(out) == 0 && written)
		return true;
	free(*text);
	return false;
}
