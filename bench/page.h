/* report.html: one page, with plots, tables and how to read them, that needs nothing else. */
#ifndef BENCH_PAGE_H
#define BENCH_PAGE_H

#include "bench/machine.h"
#include "bench/results.h"

/* 0, or -1 with errno. Without gnuplot the page has no plots, and stderr knows why. */
int page_write(const char *path, const struct machine *machine, const struct results *results);

#endif
