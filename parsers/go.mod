module github.com/weft-go/weft/parsers

go 1.26.0

require github.com/weft-go/weft/protocols v0.1.0

replace github.com/weft-go/weft/protocols => ../protocols
