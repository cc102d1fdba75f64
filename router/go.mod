module github.com/weft-go/weft/router

go 1.26.0

require (
	github.com/weft-go/weft/kvhash v0.1.0
	github.com/weft-go/weft/protocols v0.1.0
)

replace (
	github.com/weft-go/weft/kvhash => ../kvhash
	github.com/weft-go/weft/protocols => ../protocols
)
