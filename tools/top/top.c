/*
 * tickwheel-top: a live view of the services that a process publishes (tw_service_publish).
 *
 * It asks for a page every half second, and shows what lies between two pages. It uses the library
 * for arithmetic on distributions only.
 */
#include <errno.h>
#include <getopt.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/top/source.h"
#include "tools/top/view.h"

static const char usage[] = "usage: tickwheel-top [-d SECONDS] [--once] [--service N] [PID]\n";

static const char help[] =
    "Shows a service of a running process that has called tw_service_publish.\n"
    "\n"
    "  PID              the process; without it the only one that publishes a service\n"
    "  -d, --delay S    seconds between two looks: 0.1 to 60; default 0.5\n"
    "  -s, --service N  the process's service number N, counted from 1; default 1\n"
    "  -1, --once       looks twice, prints what it sees as text, and ends\n"
    "  -V, --version    prints the version\n"
    "  -h, --help       prints this\n"
    "\n"
    "Keys: q ends, Tab shows the process's next service.\n";

struct options {
	int pid;
	unsigned delay_ms;
	unsigned long service; /* from 1 */
	bool once;
};

__attribute__((noreturn)) static void fail(const char *why)
{
	terminal_close();
	fprintf(stderr, "tickwheel-top: %s\n", why);
	exit(1);
}

__attribute__((noreturn)) static void fail_usage(const char *what, const char *value)
{
	fprintf(stderr, "tickwheel-top: %s '%s'\n%s", what, value, usage);
	exit(2);
}

/* --------------------------------------------------------------------- options */

static unsigned read_delay(const char *text)
{
	char *end;
	double seconds = strtod(text, &end);
	if (end == text || *end || !(seconds >= 0.1 && seconds <= 60))
		fail_usage("not a delay of 0.1 to 60 seconds:", text);
	return (unsigned)(seconds * 1000);
}

static unsigned long read_number(const char *what, const char *text, unsigned long most)
{
	char *end;
	errno = 0;
	unsigned long n = strtoul(text, &end, 10);
	if (errno || *text < '0' || *text > '9' || *end || n == 0 || n > most)
		fail_usage(what, text);
	return n;
}

__attribute__((noreturn)) static void print_version(void)
{
	printf("tickwheel-top %d.%d.%d, format %d\n", TW_VERSION_MAJOR, TW_VERSION_MINOR,
	       TW_VERSION_PATCH, PAGE_FORMAT);
	exit(0);
}

static void read_option(struct options *options, int option)
{
	switch (option) {
	case 'd':
		options->delay_ms = read_delay(optarg);
		break;
	case 's':
		options->service = read_number("not the number of a service:", optarg, SOURCE_MOST);
		break;
	case '1':
		options->once = true;
		break;
	case 'V':
		print_version();
	case 'h':
		printf("%s%s", usage, help);
		exit(0);
	default:
		fputs(usage, stderr);
		exit(2);
	}
}

static struct options read_options(int argc, char **argv)
{
	static const struct option known[] = {
	    {"delay", required_argument, NULL, 'd'}, {"service", required_argument, NULL, 's'},
	    {"once", no_argument, NULL, '1'},        {"version", no_argument, NULL, 'V'},
	    {"help", no_argument, NULL, 'h'},        {0}};
	struct options options = {.delay_ms = 500, .service = 1};
	for (int option; (option = getopt_long(argc, argv, "d:s:1Vh", known, NULL)) != -1;)
		read_option(&options, option);
	if (argc - optind > 1)
		fail_usage("one process is enough:", argv[optind + 1]);
	if (argc - optind == 1)
		options.pid = (int)read_number("not a process:", argv[optind], INT32_MAX);
	return options;
}

/* --------------------------------------------------------------------- process */

/* The only process that publishes services. */
static int find_process(void)
{
	struct source sources[SOURCE_MOST];
	char command[64];
	size_t n = source_list(0, sources, SOURCE_MOST);
	if (n == 0)
		fail("no process here publishes a service: it has to call tw_service_publish");
	if (sources[0].pid == sources[n - 1].pid)
		return sources[0].pid;
	fprintf(stderr, "tickwheel-top: several processes publish a service; name one:\n");
	for (size_t i = 0; i < n; i++) {
		if (i && sources[i].pid == sources[i - 1].pid)
			continue;
		source_command(sources[i].pid, command, sizeof command);
		fprintf(stderr, "  %d %s\n", sources[i].pid, command);
	}
	exit(1);
}

static struct source choose(int pid, unsigned long service)
{
	struct source sources[SOURCE_MOST];
	char why[SOURCE_TEXT];
	size_t n = source_list(pid, sources, SOURCE_MOST);
	if (n == 0) {
		source_explain(pid, why);
		fail(why);
	}
	if (service > n) {
		snprintf(why, sizeof why, "process %d publishes %zu services, not %lu", pid, n,
			 service);
		fail(why);
	}
	return sources[service - 1];
}

static void take(struct view *view, const struct source *source)
{
	char why[SOURCE_TEXT];
	struct page page;
	if (!source_read(source, &page, why))
		fail(why);
	view_take(view, &page);
}

/* ------------------------------------------------------------------------ shows */

static struct screen screen;

static void draw(const struct view *view, bool on_terminal)
{
	unsigned columns, rows;
	terminal_size(&columns, &rows);
	screen_clear(&screen, columns, on_terminal ? rows : SCREEN_LINES);
	view_draw(view, &screen);
	if (on_terminal)
		terminal_show(&screen);
	else if (!screen_print(&screen))
		fail("cannot write");
}

static void show_once(struct view *view, const struct source *source, const struct options *options)
{
	const struct timespec delay = {options->delay_ms / 1000,
				       options->delay_ms % 1000 * 1000000L};
	take(view, source);
	nanosleep(&delay, NULL);
	take(view, source);
	draw(view, false);
}

/* The one after it, or the first one. */
static void next_service(struct view *view, struct source *source)
{
	struct source sources[SOURCE_MOST];
	size_t n = source_list(view->pid, sources, SOURCE_MOST), next = 0;
	for (size_t i = 0; i + 1 < n; i++)
		if (sources[i].number == source->number)
			next = i + 1;
	if (n)
		*source = sources[next];
	view_free(view);
	source_command(view->pid, view->command, sizeof view->command);
}

static uint64_t monotonic_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Until the next look. False: the user has seen enough. */
static bool attend(struct view *view, struct source *source, unsigned delay_ms)
{
	uint64_t until_ms = monotonic_ms() + delay_ms;
	for (uint64_t now_ms; (now_ms = monotonic_ms()) < until_ms;) {
		int key = terminal_key((unsigned)(until_ms - now_ms));
		if (key == 'q' || key == 'Q' || key == 3 || key < 0)
			return false;
		if (key == '\t') {
			next_service(view, source);
			return true;
		}
		draw(view, true); /* the size may have changed */
	}
	return true;
}

static void show(struct view *view, struct source *source, const struct options *options)
{
	do {
		take(view, source);
		draw(view, true);
	} while (attend(view, source, options->delay_ms));
	terminal_close();
}

int main(int argc, char **argv)
{
	static struct view view;
	setlocale(LC_CTYPE, ""); /* numbers stay as they are */
	screen.utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	struct options options = read_options(argc, argv);
	view.pid = options.pid ? options.pid : find_process();
	source_command(view.pid, view.command, sizeof view.command);
	struct source source = choose(view.pid, options.service);
	if (options.once || !terminal_open())
		show_once(&view, &source, &options);
	else
		show(&view, &source, &options);
	view_free(&view);
	return 0;
}
