# The stress programs, SECONDS=n each, AT_ONCE side by side; and the soak.

stress_bins := $(patsubst %.c,$B/%,$(filter-out test/stress/soak.c,$(wildcard test/stress/*.c)))

$B/test/stress/%: $B/test/stress/%.o $(archives)
	$(call say,link)$(CC) $(links) $(CFLAGS) -o $@ $^ -lm

.PHONY: stress tsan asan soak

##@ Stress

stress: deps-build ## every stress program, SECONDS=n each
	$(again) $(stress_bins)
	$(Q)test/stress/run.sh $(SECONDS) $(AT_ONCE) $(stress_bins)

tsan: ## the stress under ThreadSanitizer
	$(Q)TSAN_OPTIONS="suppressions=$(CURDIR)/test/tsan.supp halt_on_error=1 $$TSAN_OPTIONS" \
		$(MAKE) --no-print-directory stress MODE=tsan

asan: ## stress and unit tests under AddressSanitizer and UndefinedBehaviorSanitizer
	$(again) stress MODE=asan
	$(again) deps-build+test build/asan/test/unit/run MODE=asan
	$(Q)LSAN_OPTIONS="suppressions=$(CURDIR)/test/lsan.supp" build/asan/test/unit/run --jobs 2

soak: deps-build ## a busy service for SECONDS=n: memory, lateness, descriptors and threads stay flat
	$(again) $B/test/stress/soak
	$(Q)$B/test/stress/soak $(SECONDS)
