module github.com/weft-go/weft/protocols

go 1.26.0
