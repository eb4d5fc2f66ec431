/* The text that the misuse hook got last: a suite sets the hook to keep_text. */
#ifndef TEST_SUPPORT_MISUSE_TEXT_H
#define TEST_SUPPORT_MISUSE_TEXT_H

#include <string.h>

static char text[256];

static inline void keep_text(const char *told)
{
	strncpy(text, told, sizeof(text) - 1);
}

#endif
