/* Commands for times to live. */
#include "examples/cache/cache.h"
#include "examples/cache/commands.h"
#include "examples/cache/pubsub.h"
#include "examples/cache/resp.h"

struct conditions {
	bool nx, xx, gt, lt;
};

static bool take_conditions(struct call *c, struct conditions *o)
{
	*o = (struct conditions){0};
	for (size_t i = 3; i < c->argc; i++) {
		bool *which = slice_is(c->argv[i], "nx")   ? &o->nx
			      : slice_is(c->argv[i], "xx") ? &o->xx
			      : slice_is(c->argv[i], "gt") ? &o->gt
			      : slice_is(c->argv[i], "lt") ? &o->lt
							   : NULL;
		if (which == NULL) {
			reply_error(c->out, "ERR Unsupported option %.*s", (int)c->argv[i].length,
				    c->argv[i].data);
			return false;
		}
		*which = true;
	}
	if (o->nx && (o->xx || o->gt || o->lt)) {
		reply_error(c->out,
			    "ERR NX and XX, GT or LT options at the same time are not compatible");
		return false;
	}
	if (o->gt && o->lt) {
		reply_error(c->out, "ERR GT and LT options at the same time are not compatible");
		return false;
	}
	return true;
}

/* A key without a deadline counts as one that ends never. */
static bool allows(const struct conditions *o, uint64_t now_ms, int64_t new_ms)
{
	bool has = now_ms != 0;
	if ((o->nx && has) || (o->xx && !has) || (o->gt && (!has || new_ms <= (int64_t)now_ms)))
		return false;
	return !(o->lt && has && new_ms >= (int64_t)now_ms);
}

void cmd_expire(struct call *c)
{
	struct conditions o;
	unsigned form = (unsigned)c->command->variant;
	int64_t value, deadline_ms;
	if (!take_conditions(c, &o) || !take_integer(c, c->argv[2], &value) ||
	    !take_deadline(c, value, form, &deadline_ms))
		return;
	struct place p = place_lock(c->argv[1]);
	if (p.entry == NULL || !allows(&o, p.entry->deadline_ms, deadline_ms)) {
		reply_integer(c->out, 0);
	} else if (deadline_ms <= (int64_t)unix_ms() || (value <= 0 && !(form & ABSOLUTE))) {
		place_delete(&p);
		reply_integer(c->out, 1);
	} else if (!expiry_set(p.shard, p.entry, (uint64_t)deadline_ms)) {
		reply_no_room(c);
	} else {
		notify(NOTIFY_GENERIC, "expire", p.key);
		reply_integer(c->out, 1);
	}
	place_unlock(&p);
}

/* -2: no such key. -1: it has no deadline. Seconds are rounded to the nearest. */
void cmd_ttl(struct call *c)
{
	int64_t answer = -2;
	unsigned form = (unsigned)c->command->variant;
	struct place p = place_read(c, c->argv[1]);
	if (p.entry != NULL)
		answer = p.entry->deadline_ms != 0 ? (int64_t)p.entry->deadline_ms : -1;
	place_unlock(&p);
	if (answer > 0) {
		int64_t left = answer - (form & ABSOLUTE ? 0 : (int64_t)unix_ms_up());
		left = left < 0 ? 0 : left;
		answer = form & IN_MS ? left : left / 1000 + (left % 1000 >= 500);
	}
	reply_integer(c->out, answer);
}

void cmd_persist(struct call *c)
{
	struct place p = place_lock(c->argv[1]);
	bool had = p.entry != NULL && p.entry->deadline_ms != 0;
	if (had) {
		expiry_clear(p.shard, p.entry);
		notify(NOTIFY_GENERIC, "persist", p.key);
	}
	place_unlock(&p);
	reply_integer(c->out, had);
}
