#include "mpsc/base/assert.h"

#include <stdio.h>
#include <stdlib.h>

void tw__assert_failed(const char *condition, const char *file, int line)
{
	fprintf(stderr, "tickwheel: %s:%d: assertion failed: %s\n", file, line, condition);
	abort();
}
