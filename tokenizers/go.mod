module github.com/weft-go/weft/tokenizers

go 1.26.0
