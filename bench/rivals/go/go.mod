module tickwheel/bench/rivals/go

go 1.19
