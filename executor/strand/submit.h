/* The end of what was submitted to a strand. */
#ifndef TW_EXECUTOR_STRAND_SUBMIT_H
#define TW_EXECUTOR_STRAND_SUBMIT_H

#include "executor/strand/internal.h"

/*
 * Closes the strand, if it is not, and ends all that waits. The lock is released meanwhile; the
 * caller is a user.
 */
void tw__strand_close(tw_strand *strand);

#endif
