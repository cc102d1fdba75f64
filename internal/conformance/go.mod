module github.com/weft-go/weft/internal/conformance

go 1.26.0

require (
	github.com/weft-go/weft/kvhash v0.1.0
	github.com/weft-go/weft/parsers v0.1.0
	github.com/weft-go/weft/protocols v0.1.0
	github.com/weft-go/weft/router v0.1.0
	github.com/weft-go/weft/tokenizers v0.1.0
)

replace (
	github.com/weft-go/weft/kvhash => ../../kvhash
	github.com/weft-go/weft/parsers => ../../parsers
	github.com/weft-go/weft/protocols => ../../protocols
	github.com/weft-go/weft/router => ../../router
	github.com/weft-go/weft/tokenizers => ../../tokenizers
)
