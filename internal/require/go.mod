module github.com/weft-go/weft/internal/require

go 1.26.0

require github.com/google/go-cmp v0.7.0
