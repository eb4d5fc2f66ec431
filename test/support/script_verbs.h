/* Between script.c, which plays, and script_verbs.c, which has the verbs of all stages. */
#ifndef TEST_SUPPORT_SCRIPT_VERBS_H
#define TEST_SUPPORT_SCRIPT_VERBS_H

#include "script.h"

extern const struct verb script_verbs[];

void script_begin(const struct stage *stage);
void script_opened(const struct words *given);
void script_end_step(void);
void script_end(void);
void script_closed(void);

#endif
