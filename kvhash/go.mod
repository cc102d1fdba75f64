module github.com/weft-go/weft/kvhash

go 1.26.0

require (
	github.com/google/go-cmp v0.7.0
	github.com/weft-go/weft/internal/require v0.1.0
	github.com/zeebo/xxh3 v1.1.0
	pgregory.net/rapid v1.3.0
)

require (
	github.com/klauspost/cpuid/v2 v2.2.10 // indirect
	golang.org/x/sys v0.30.0 // indirect
)

replace github.com/weft-go/weft/internal/require => ../internal/require
