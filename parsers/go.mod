module github.com/weft-go/weft/parsers

go 1.26.0

require (
	github.com/google/go-cmp v0.7.0
	github.com/weft-go/weft/internal/require v0.1.0
	github.com/weft-go/weft/protocols v0.1.0
)

replace (
	github.com/weft-go/weft/internal/require => ../internal/require
	github.com/weft-go/weft/protocols => ../protocols
)
