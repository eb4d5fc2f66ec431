/* Filling and sending outcomes. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/outcome.h"

static int destination = STDERR_FILENO;

void outcome_set(struct outcome *outcome, const char *name, double value)
{
	if (outcome->count == OUTCOME_FIGURES)
		outcome_fail(outcome, "no room for figure %s", name);
	snprintf(outcome->figures[outcome->count].name, FIGURE_NAME_SIZE, "%s", name);
	outcome->figures[outcome->count++].value = value;
}

static void note_trouble(struct outcome *outcome, const char *format, va_list arguments)
{
	if (!outcome->trouble[0])
		vsnprintf(outcome->trouble, sizeof outcome->trouble, format, arguments);
}

void outcome_violation(struct outcome *outcome, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	note_trouble(outcome, format, arguments);
	va_end(arguments);
	outcome->violations++;
}

void outcome_fail(struct outcome *outcome, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	note_trouble(outcome, format, arguments);
	va_end(arguments);
	outcome_send(outcome);
	_exit(EXIT_FAILURE);
}

void outcome_send_to(int descriptor)
{
	destination = descriptor;
}

int outcome_send(const struct outcome *outcome)
{
	const char *rest = (const char *)outcome;
	for (size_t left = sizeof *outcome; left > 0;) {
		ssize_t written = write(destination, rest, left);
		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return -1;
		rest += written;
		left -= (size_t)written;
	}
	return 0;
}
