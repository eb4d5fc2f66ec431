#include "rows.h"

#include <stdlib.h>
#include <string.h>

tw_service *manual, *threaded;
tw_clock *manual_clock;
tw_pool *pool;
tw_executor unsound;

static char heard[256];
static int times;

static void hear(const char *text)
{
	times++;
	snprintf(heard, sizeof heard, "%s", text);
}

void misuse_fn(void *arg)
{
}

void misuse_open(void)
{
	expect_eq(tw_clock_manual_create(&manual_clock, TW_SECOND), 0);
	const struct tw_service_config config = {.size = sizeof config,
						 .clock = manual_clock,
						 .drive = TW_DRIVE_MANUAL,
						 .executor = tw_executor_inline()};
	expect_eq(tw_service_create(&manual, &config), 0);
	expect_eq(tw_service_create(&threaded, NULL), 0);
	expect_eq(tw_pool_create(&pool, NULL), 0);
	tw_set_misuse_hook(hear);
}

void misuse_close(void)
{
	expect_in_fini();
	tw_set_misuse_hook(NULL);
	expect_eq(tw_service_destroy(manual), 0);
	expect_eq(tw_service_destroy(threaded), 0);
	expect_eq(tw_pool_destroy(pool), 0);
	expect_eq(tw_clock_manual_destroy(manual_clock), 0);
}

void misuse_begin(void)
{
	heard[0] = '\0';
	times = 0;
}

/* For test/contract/answers.sh: the row goes to the file that TW_ANSWERS names. */
static void tell(const char *call, long long is)
{
	const char *name = getenv("TW_ANSWERS");
	FILE *out = name ? fopen(name, "a") : NULL;
	if (!out)
		return;
	fprintf(out, "%lld\t%s\n", is, call);
	fclose(out);
}

void misuse_expect(const char *call, long long is, int answer, const char *text)
{
	tell(call, is);
	cr_assert(is == answer, "%s answered %lld, not %d", call, is, answer);
	cr_assert(strcmp(heard, text) == 0, "%s\n  told: %s\n  not:  %s", call, heard, text);
	cr_assert(times == 1, "%s told %d times", call, times);
}
