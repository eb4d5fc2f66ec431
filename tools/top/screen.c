#define _XOPEN_SOURCE 700
#include "tools/top/screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

/* ----------------------------------------------------------------------- lines */

void screen_clear(struct screen *screen, unsigned columns, unsigned rows)
{
	screen->columns = columns;
	screen->rows = rows < SCREEN_LINES ? rows : SCREEN_LINES;
	screen->count = screen->width = 0;
	screen->used = 0;
}

void screen_line(struct screen *screen)
{
	screen->count++;
	screen->width = 0;
	screen->used = 0;
	if (screen->count <= screen->rows)
		screen->lines[screen->count - 1][0] = 0;
}

/* Appends one character if it has room in the line, and below the column `limit`. */
static bool append(struct screen *screen, const char *at, size_t bytes, unsigned width,
		   unsigned limit)
{
	if (screen->count == 0 || screen->count > screen->rows)
		return false;
	if (screen->width + width > limit || screen->used + bytes >= SCREEN_BYTES)
		return false;
	char *line = screen->lines[screen->count - 1];
	memcpy(line + screen->used, at, bytes);
	screen->used += bytes;
	screen->width += width;
	line[screen->used] = 0;
	return true;
}

/* Text may come from another process: control characters must not reach the terminal. */
static void put_text(struct screen *screen, const char *text, unsigned limit)
{
	mbstate_t state = {0};
	limit = limit < screen->columns ? limit : screen->columns;
	while (*text) {
		wchar_t c;
		size_t bytes = mbrtowc(&c, text, strlen(text), &state);
		int width = bytes == (size_t)-1 || bytes == (size_t)-2 ? -1 : wcwidth(c);
		if (width < 0) {
			memset(&state, 0, sizeof state);
			if (!append(screen, "?", 1, 1, limit))
				return;
			text++;
			continue;
		}
		if (!append(screen, text, bytes, (unsigned)width, limit))
			return;
		text += bytes;
	}
}

void screen_put(struct screen *screen, const char *format, ...)
{
	char text[SCREEN_BYTES];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	put_text(screen, text, screen->columns);
}

void screen_to(struct screen *screen, unsigned column)
{
	while (screen->width < column && append(screen, " ", 1, 1, screen->columns))
		continue;
}

void screen_field(struct screen *screen, const char *text, unsigned width)
{
	unsigned end = screen->width + width;
	put_text(screen, text, end);
	screen_to(screen, end);
}

static unsigned shown(const struct screen *screen)
{
	return screen->count < screen->rows ? screen->count : screen->rows;
}

bool screen_print(const struct screen *screen)
{
	for (unsigned i = 0; i < shown(screen); i++)
		puts(screen->lines[i]);
	return fflush(stdout) == 0;
}

/* -------------------------------------------------------------------- terminal */

static struct termios before;
static bool taken;
static volatile sig_atomic_t to_end;

static void on_signal(int number)
{
	to_end |= number != SIGWINCH;
}

static void handle_signals(void)
{
	struct sigaction action = {.sa_handler = on_signal}; /* without SA_RESTART: poll returns */
	sigemptyset(&action.sa_mask);
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGWINCH};
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		sigaction(numbers[i], &action, NULL);
}

bool terminal_open(void)
{
	if (!isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &before))
		return false;
	struct termios raw = before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ISIG);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	if (tcsetattr(STDIN_FILENO, TCSANOW, &raw))
		return false;
	handle_signals();
	taken = true;
	fputs("\033[?1049h\033[?25l\033[2J", stdout); /* a screen of its own, no cursor */
	return true;
}

void terminal_close(void)
{
	if (!taken)
		return;
	taken = false;
	fputs("\033[?25h\033[?1049l", stdout);
	fflush(stdout);
	tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

void terminal_size(unsigned *columns, unsigned *rows)
{
	struct winsize size;
	const char *wide = getenv("COLUMNS");
	*columns = 80;
	*rows = 24;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col && size.ws_row) {
		*columns = size.ws_col;
		*rows = size.ws_row;
	} else if (wide && atoi(wide) > 0) {
		*columns = (unsigned)atoi(wide);
	}
}

void terminal_show(const struct screen *screen)
{
	fputs("\033[H", stdout);
	for (unsigned i = 0; i < shown(screen); i++)
		printf("%s\033[K%s", screen->lines[i], i + 1 < shown(screen) ? "\r\n" : "");
	fputs("\033[J", stdout);
	fflush(stdout);
}

int terminal_key(unsigned wait_ms)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	unsigned char key;
	int n = to_end ? 0 : poll(&input, 1, (int)wait_ms);
	if (to_end || (n < 0 && errno != EINTR))
		return -1;
	if (n <= 0)
		return 0;
	return read(STDIN_FILENO, &key, 1) == 1 ? key : -1;
}
