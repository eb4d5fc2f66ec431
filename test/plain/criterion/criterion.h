/*
 * A stand-in for Criterion's header, for machines and tools that Criterion does not go with: the
 * unit tests compiled with this one first on the include path need no library, and each test is a
 * plain fork of a process with one thread. So valgrind follows them without starting anew for each,
 * ThreadSanitizer bears them, and they run under an emulator of another processor.
 *
 * It knows what the tests use, and no more; whatever is missing does not compile.
 */
#ifndef TEST_PLAIN_CRITERION_H
#define TEST_PLAIN_CRITERION_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct plain_options {
	void (*init)(void);
	void (*fini)(void);
	double timeout; /* seconds; 0: none of its own */
	int signal;     /* that ends it; 0: none */
	int exit_code;
	bool disabled;
	const char *description;
};

struct plain_test {
	struct plain_test *next;
	const char *suite, *name; /* name NULL: options of the whole suite */
	void (*body)(void);
	struct plain_options options;
};

void plain_register(struct plain_test *test);

__attribute__((noreturn)) void plain_failed(const char *file, int line, const char *condition,
					    const char *format, ...);

/* The last one is said when the test fails. */
void plain_noted(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define PLAIN_ADD(suite_name, test_name, of_suite, of_test, function, ...)                  \
	__attribute__((constructor)) static void plain_add_##suite_name##_##test_name(void) \
	{                                                                                   \
		static struct plain_test test = {                                           \
		    NULL, of_suite, of_test, function, {__VA_ARGS__}};                      \
		plain_register(&test);                                                      \
	}

#define Test(suite_name, test_name, ...)                          \
	static void plain_##suite_name##_##test_name(void);       \
	PLAIN_ADD(suite_name, test_name, #suite_name, #test_name, \
		  plain_##suite_name##_##test_name, __VA_ARGS__)  \
	static void plain_##suite_name##_##test_name(void)

#define TestSuite(suite_name, ...) \
	PLAIN_ADD(suite_name, whole_suite, #suite_name, NULL, NULL, __VA_ARGS__)

/* The format is a string literal, or left out. */
#define PLAIN_CHECK(holds, text, ...) \
	((holds) ? (void)0 : plain_failed(__FILE__, __LINE__, text, "" __VA_ARGS__))

#define cr_assert(condition, ...) PLAIN_CHECK(condition, #condition, __VA_ARGS__)
#define cr_assert_not(condition, ...) PLAIN_CHECK(!(condition), "not " #condition, __VA_ARGS__)
#define cr_assert_eq(a, b, ...) PLAIN_CHECK((a) == (b), #a " == " #b, __VA_ARGS__)
#define cr_assert_neq(a, b, ...) PLAIN_CHECK((a) != (b), #a " != " #b, __VA_ARGS__)
#define cr_assert_lt(a, b, ...) PLAIN_CHECK((a) < (b), #a " < " #b, __VA_ARGS__)
#define cr_assert_leq(a, b, ...) PLAIN_CHECK((a) <= (b), #a " <= " #b, __VA_ARGS__)
#define cr_assert_gt(a, b, ...) PLAIN_CHECK((a) > (b), #a " > " #b, __VA_ARGS__)
#define cr_assert_geq(a, b, ...) PLAIN_CHECK((a) >= (b), #a " >= " #b, __VA_ARGS__)
#define cr_assert_null(a, ...) PLAIN_CHECK((a) == NULL, #a " == NULL", __VA_ARGS__)
#define cr_assert_not_null(a, ...) PLAIN_CHECK((a) != NULL, #a " != NULL", __VA_ARGS__)
#define cr_assert_str_eq(a, b, ...) PLAIN_CHECK(strcmp(a, b) == 0, #a " is " #b, __VA_ARGS__)
#define cr_assert_str_neq(a, b, ...) PLAIN_CHECK(strcmp(a, b) != 0, #a " is not " #b, __VA_ARGS__)
#define cr_assert_arr_eq(a, b, size, ...) \
	PLAIN_CHECK(memcmp(a, b, size) == 0, #a " equals " #b, __VA_ARGS__)
#define cr_assert_arr_neq(a, b, size, ...) \
	PLAIN_CHECK(memcmp(a, b, size) != 0, #a " differs from " #b, __VA_ARGS__)
#define cr_assert_fail(...) PLAIN_CHECK(false, "failed", __VA_ARGS__)
#define cr_fail cr_assert_fail
#define cr_log_info plain_noted
#define cr_expect cr_assert
#define cr_expect_not cr_assert_not
#define cr_expect_eq cr_assert_eq
#define cr_expect_neq cr_assert_neq
#define cr_expect_lt cr_assert_lt
#define cr_expect_leq cr_assert_leq
#define cr_expect_gt cr_assert_gt
#define cr_expect_geq cr_assert_geq
#define cr_expect_str_eq cr_assert_str_eq

#endif
