/*
 * The bare wheel against a naive array: the programs of test/unit/wheel/model.c, their draws taken
 * from the fuzzer's bytes.
 */
#include "test/fuzz/input.h"

#include "test/unit/wheel/model.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	random_feed(data, size);
	random_program(64, 1);
	return 0;
}
