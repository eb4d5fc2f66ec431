/*
 * The whole service on the manual clock against a naive twin: the programs of
 * test/unit/service/model.c.
 */
#include "test/fuzz/input.h"

#include "test/unit/service/model.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	random_feed(data, size);
	run_program(1);
	return 0;
}
