# The example of timers that outlive a machine, and its test. The Makefile includes this file.

durable_o := $(patsubst %.c,$B/%.o,$(wildcard examples/durable/*.c))
durable   := $B/durable/durable

$(durable): $(durable_o) $(archives)
	@mkdir -p $(@D)
	$(call say,link)$(CC) $(links) $(CFLAGS) -o $@ $^ -lhiredis

.PHONY: durable check-durable

durable: check-durable

check-durable: deps-build+durable+faults ## timers in Redis: nodes and Redis die, stop and err; ends with a verdict
	$(again) $(durable)
	$(Q)test/examples/durable.sh $(durable)
