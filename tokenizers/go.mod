module github.com/weft-go/weft/tokenizers

go 1.26.0

require github.com/maypok86/otter/v2 v2.4.0
