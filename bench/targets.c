/* The table of targets. */
#include <stddef.h>
#include <string.h>

#include "bench/targets.h"

enum { ANY = 0 };

static const struct target {
	const char *workload;
	const char *candidate; /* NULL: both of ours */
	uint32_t n;
	unsigned threads;
	const char *text;
} targets[] = {
    {"W1", "tickwheel-persistent", 1000000, ANY, "1.25 x wheel-bare"},
    {"W1", "tickwheel-persistent", 10000000, ANY, "1.25 x wheel-bare"},
    {"W3", "tickwheel-persistent", 1000000, ANY, "1.2 x wheel-bare"},
    {"W1", "tickwheel-group", ANY, ANY, "1.6 x plain"},
    {"W2", "tickwheel-group", ANY, ANY, "1.6 x plain"},
    {"W1", NULL, 1000, 1, "12"},
    {"W1", NULL, 1000, 2, "14"},
    {"W1", NULL, 100000, 1, "22"},
    {"W1", NULL, 100000, 2, "30"},
    {"W1", NULL, 1000000, 1, "90"},
    {"W1", NULL, 1000000, 2, "130"},
    {"W1", NULL, 10000000, 1, "110"},
    {"W1", NULL, 10000000, 2, "150"},
    {"W2", NULL, ANY, 1, "12"},
    {"W2", NULL, ANY, 2, "13.5"},
    {"W3", "tickwheel-at", 10000, 1, "6"},
    {"W3", "tickwheel-at", 10000, 2, "7"},
    {"W3", "tickwheel", 10000, 1, "16"},
    {"W3", "tickwheel", 10000, 2, "18"},
    {"W3", "tickwheel-at", 1000000, 1, "27"},
    {"W3", "tickwheel-at", 1000000, 2, "35"},
    {"W3", "tickwheel", 1000000, 1, "38"},
    {"W3", "tickwheel", 1000000, 2, "45"},
    {"W4", NULL, 1000000, ANY, "100"},
    {"W6", NULL, ANY, ANY, "48"},
    {"W7", NULL, ANY, ANY, "RSS 64 MB"},
    {"W11", NULL, 1, ANY, "1.5 x ring"},
    {"W12", "tickwheel-pool", ANY, ANY, "1.5 x ring"},
};

const char *target_text(const char *workload, const char *candidate, uint32_t n, unsigned threads)
{
	if (strncmp(candidate, "tickwheel", strlen("tickwheel")) != 0)
		return "";
	for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
		const struct target *t = &targets[i];
		if (strcmp(t->workload, workload) == 0 &&
		    (!t->candidate || strcmp(t->candidate, candidate) == 0) &&
		    (t->n == ANY || t->n == n) && (t->threads == ANY || t->threads == threads))
			return t->text;
	}
	return "";
}
