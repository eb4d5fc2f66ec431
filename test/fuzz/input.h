/*
 * What the fuzz targets share: the tests' own property functions, whose random numbers are the
 * fuzzer's bytes, and whose failure is its crash.
 */
#ifndef TEST_FUZZ_INPUT_H
#define TEST_FUZZ_INPUT_H

#define RANDOM_FROM_INPUT

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <criterion/criterion.h>

#include "test/support/random.h"

const uint8_t *random_input;
size_t random_input_left;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void random_feed(const uint8_t *data, size_t size)
{
	random_input = data;
	random_input_left = size;
}

void plain_register(struct plain_test *test)
{
}

void plain_failed(const char *file, int line, const char *condition, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fprintf(stderr, "%s:%d: %s: ", file, line, condition);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	abort();
}

#endif
