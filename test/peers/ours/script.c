/* Reading scripts, and carrying them out in order. */
#include "test/peers/ours/script.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { START_S = 1000, MOST_RUNS = 400 };

void say(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}

void must(int result, const char *call)
{
	if (result == 0)
		return;
	say("error %d: %s", result, call);
	fflush(stdout);
	_Exit(3);
}

static int read_numbers(char **rest, int64_t *out)
{
	int n = 0;
	for (char *word; n < ARGS && (word = strtok_r(NULL, " \n", rest)); n++)
		out[n] = strtoll(word, NULL, 10);
	return n;
}

static bool read_step(char *line, struct step *step)
{
	char *rest, *word = strtok_r(line, " \n", &rest);
	*step = (struct step){.on = -1};
	if (word && strcmp(word, "on") == 0) {
		const char *id = strtok_r(NULL, " \n", &rest), *nth = strtok_r(NULL, " \n", &rest);
		if (!id || !nth)
			return false;
		step->on = atoi(id);
		step->nth = atoi(nth);
		word = strtok_r(NULL, " \n", &rest);
	}
	if (!word)
		return false;
	snprintf(step->op, sizeof step->op, "%s", word);
	read_numbers(&rest, step->args);
	return true;
}

static bool read_header(char *line, struct script *script)
{
	char *rest, *row = strtok_r(line, " \n", &rest),
		    *kind = row ? strtok_r(NULL, " \n", &rest) : NULL;
	if (!kind)
		return false;
	snprintf(script->row, sizeof script->row, "%s", row);
	snprintf(script->kind, sizeof script->kind, "%s", kind);
	read_numbers(&rest, script->knobs);
	return true;
}

bool script_read(struct script *script)
{
	char line[256];
	*script = (struct script){.count = 0};
	if (!fgets(line, sizeof line, stdin) || !read_header(line, script))
		return false;
	while (fgets(line, sizeof line, stdin)) {
		if (strcmp(line, "end\n") == 0)
			return true;
		if (script->count == STEPS || !read_step(line, &script->steps[script->count++]))
			return false;
	}
	return false;
}

void script_play(struct script *script, step_fn *fn, void *player)
{
	for (int i = 0; i < script->count; i++) {
		if (script->steps[i].on >= 0)
			continue;
		say("> %d", i);
		fn(player, &script->steps[i], false);
	}
}

void script_run(struct script *script, int id, step_fn *fn, void *player)
{
	int nth = ++script->runs[id];
	if (++script->runs_in_all > MOST_RUNS) {
		say("too many runs");
		fflush(stdout);
		_Exit(4);
	}
	for (int i = 0; i < script->count; i++)
		if (script->steps[i].on == id && script->steps[i].nth == nth)
			fn(player, &script->steps[i], true);
}

bool step_is(const struct step *step, const char *op)
{
	return strcmp(step->op, op) == 0;
}

bool kind_is(const struct script *script, const char *kind)
{
	return strcmp(script->kind, kind) == 0;
}

void service_open(struct fixture *fixture, uint64_t tick_ns)
{
	fixture->start_ns = START_S * TW_SECOND;
	MUST(tw_clock_manual_create(&fixture->clock, fixture->start_ns));
	struct tw_service_config config = {.size = sizeof config,
					   .tick_ns = tick_ns,
					   .drive = TW_DRIVE_MANUAL,
					   .clock = fixture->clock,
					   .executor = tw_executor_inline(),
					   .max_timers = 4096,
					   .seed = 1};
	MUST(tw_service_create(&fixture->service, &config));
}

void service_close(struct fixture *fixture)
{
	MUST(tw_service_destroy(fixture->service));
	MUST(tw_clock_manual_destroy(fixture->clock));
}

int64_t service_ms(const struct fixture *fixture)
{
	return (int64_t)((tw_clock_now(fixture->clock) - fixture->start_ns) / MS);
}
