/*
 * Names of timers in the dump and in liveness, while they wait. liveness_kinds.c has those of what
 * runs.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/support/liveness.h"
#include "test/support/rig_suite.h"

TestSuite(service_names, .init = open_rig, .fini = close_rig, .timeout = 30);

static void expect_dump_has(tw_service *service, const char *text, bool wanted)
{
	char *dump = dump_of(service);
	cr_assert((strstr(dump, text) != NULL) == wanted, "%s: %s\nin: %s", text,
		  wanted ? "missing" : "unexpected", dump);
	free(dump);
}

static void nothing(void *arg)
{
}

static tw_timer schedule_named(tw_service *service, const char *name, tw_group group)
{
	tw_timer timer;
	struct tw_task task = {
	    .size = sizeof task, .fn = nothing, .when_ns = SECOND, .name = name, .group = group};
	expect_eq(tw_schedule_task(service, &task, &timer), 0);
	return timer;
}

/* ------------------------------------------------------------------ pending */

Test(service_names, a_name_does_not_pass_to_the_next_timer_of_the_slot)
{
	tw_group group;
	expect_eq(tw_group_create(&group, rig.service), 0);
	/* through the magazine, and by kept records of the group */
	for (int i = 0; i < 1000; i++) {
		tw_timer timer = schedule_named(rig.service, "old", group);
		expect_eq(tw_cancel(rig.service, timer), TW_CANCELLED);
		timer = schedule_named(rig.service, NULL, group);
		expect_dump_has(rig.service, "\"old\"", false);
		expect_eq(tw_cancel(rig.service, timer), TW_CANCELLED);
	}
	expect_eq(tw_group_destroy(rig.service, group), 0);
}

Test(service_names, pending_timers_are_listed_with_their_names)
{
	static const char *const names[] = {"first", "idle timeout", NULL, "fourth"};
	static const char *const lines[] = {
	    "pending, due in 1000.000 ms, \"first\", fn ", "due in 2000.000 ms, \"idle timeout\"",
	    "due in 3000.000 ms, fn ", "due in 4000.000 ms, \"fourth\""};
	tw_timer timers[4];
	for (int i = 0; i < 4; i++) {
		struct tw_task task = {.size = sizeof task,
				       .fn = nothing,
				       .when_ns = (uint64_t)(i + 1) * SECOND,
				       .name = names[i]};
		expect_eq(tw_schedule_task(rig.service, &task, &timers[i]), 0);
	}
	for (int i = 0; i < 4; i++)
		expect_dump_has(rig.service, lines[i], true);
	expect_eq(tw_cancel(rig.service, timers[1]), TW_CANCELLED);
	expect_dump_has(rig.service, "idle timeout", false);
}

Test(service_names, a_caller_built_before_names_has_none)
{
	struct tw_task task = {.size = offsetof(struct tw_task, name),
			       .fn = nothing,
			       .when_ns = SECOND,
			       .name = "unseen"};
	expect_eq(tw_schedule_task(rig.service, &task, NULL), 0);
	expect_dump_has(rig.service, "unseen", false);
	expect_dump_has(rig.service, "pending", true);
}

Test(service_names, what_is_not_printable_utf8_is_escaped)
{
	static const struct {
		const char *name, *shown;
	} cases[] = {
	    {"say \"hi\"", "\"say \\\"hi\\\"\""},
	    {"back\\slash", "\"back\\\\slash\""},
	    {"two\nlines", "\"two\\nlines\""},
	    {"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8d\xb5",
	     "\"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8d\xb5\""},
	    {"\x1b[31m", "\"\\x1b[31m\""},
	    {"\x7f\xff", "\"\\x7f\\xff\""},
	    {"cut\xe2\x82", "\"cut\\xe2\\x82\""},
	    {"\xc0\xafoverlong\xe0\x80\xaf", "\"\\xc0\\xafoverlong\\xe0\\x80\\xaf\""},
	    /* a surrogate; too large */
	    {"\xed\xa0\x80\xf4\x90\x80\x80", "\"\\xed\\xa0\\x80\\xf4\\x90\\x80\\x80\""},
	    /* a control character */
	    {"\xc2\x9b", "\"\\xc2\\x9b\""},
	    {"", "\"\""},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		tw_timer timer = schedule_named(rig.service, cases[i].name, (tw_group){0});
		expect_dump_has(rig.service, cases[i].shown, true);
		expect_eq(tw_cancel(rig.service, timer), TW_CANCELLED);
	}
}

Test(service_names, a_function_is_named_by_its_symbol_or_by_its_place_in_the_file)
{
	tw_timer timer;
	expect_eq(tw_schedule(rig.service, SECOND, (tw_fn *)(void (*)(void))perror, NULL, &timer),
		  0);
	expect_dump_has(rig.service, ", fn perror, ", true);
	expect_eq(tw_cancel(rig.service, timer), TW_CANCELLED);
	expect_eq(tw_schedule(rig.service, SECOND, nothing, NULL, &timer), 0);
	expect_dump_has(rig.service, "+0x", true); /* a static function */
	expect_eq(tw_cancel(rig.service, timer), TW_CANCELLED);
}

Test(service_names, the_oldest_overdue_timer_has_its_name)
{
	schedule_named(rig.service, "late one", (tw_group){0});
	expect_eq(tw_clock_manual_set(rig.clock, RIG_START_NS + 3 * SECOND), 0);
	struct tw_service_liveness seen = liveness_of(rig.service);
	expect_eq(seen.overdue, 1);
	cr_assert(seen.overdue_name && strcmp(seen.overdue_name, "late one") == 0);
	rig_advance(&rig, 0);
	cr_assert(liveness_of(rig.service).overdue_name == NULL);
}

Test(service_names, a_dump_begins_with_the_services_name)
{
	struct tw_service_config config = rig_config();
	config.name = "say \"hi\"\xff";
	reopen_rig(&config);
	schedule_named(rig.service, "idle timeout", (tw_group){0});
	char *dump = dump_of(rig.service);
	static const char line[] = "service \"say \\\"hi\\\"\\xff\"\n";
	cr_assert(strncmp(dump, line, strlen(line)) == 0, "%s", dump);
	free(dump);
}
