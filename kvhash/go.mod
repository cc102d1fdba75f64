module github.com/weft-go/weft/kvhash

go 1.26.0
