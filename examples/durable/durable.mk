# The example of timers that outlive a machine, and its test. The Makefile includes this file.

durable_o := $(patsubst %.c,$B/%.o,$(wildcard examples/durable/*.c))
durable   := $B/durable/durable

$(durable): $(durable_o) $(archives)
	@mkdir -p $(@D)
	$(call say,link)$(CC) $(links) $(CFLAGS) -o $@ $^ -lhiredis

.PHONY: durable check-durable

durable: deps-build+durable ## timers in Redis: nodes die, Redis dies, 100,000 jobs fall due; ends with a verdict
	$(again) $(durable)
	$(Q)examples/durable/show.sh $(durable)

check-durable: deps-build+durable+faults ## timers in Redis under faults of nodes and of Redis; a minute
	$(again) $(durable)
	$(Q)test/examples/durable.sh $(durable)
