/* What is not inline: for the layers. */
#include "wheel/core/user_code.h"
#include "wheel/core/frame.h"

struct tw__run_record *tw__layer_begin(const void *owner, tw_fn *fn, void *arg, const char *name,
				       struct tw__run **frame)
{
	if (frame) {
		struct tw__run *former = tw__current_run;
		tw__current_run = *frame;
		*frame = former;
	}
	return tw__user_begin(owner, fn, arg, name, 0);
}
