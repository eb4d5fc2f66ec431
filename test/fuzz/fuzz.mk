# libFuzzer, and the bugs that are planted for it and others.

.PHONY: fuzz check-planted

##@ Fuzzing

fuzz_bins := $(patsubst test/fuzz/%.c,build/fuzz/test/fuzz/%,$(wildcard test/fuzz/fuzz_*.c))
fuzz_support := $(patsubst %,build/fuzz/plain/test/support/%.o,expect rig)

build/fuzz/test/fuzz/%: build/fuzz/plain/test/fuzz/%.o $(fuzz_support) $$(archives)
	@mkdir -p $(@D)
	$(call say,link)$(CC) -fsanitize=fuzzer,address,undefined $(CFLAGS) -o $@ $^ -lm -pthread

fuzz: deps-build+fuzz ## libFuzzer on wheel, service and structs, SECONDS=n each; finds go to build/fuzz/found
	$(again) $(fuzz_bins) MODE=fuzz CC=clang
	$(Q)test/fuzz/run.sh $(SECONDS) $(fuzz_bins)

check-planted: deps-build+fuzz ## plants bugs in a copy of the sources; fuzz, soak, stress and unit tests must find each
	$(Q)test/planted/run.sh
