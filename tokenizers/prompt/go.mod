module github.com/weft-go/weft/tokenizers/prompt

go 1.26.0

require (
	github.com/google/go-cmp v0.7.0
	github.com/stretchr/testify v1.12.1
	github.com/weft-go/weft/parsers v0.1.0
	github.com/weft-go/weft/protocols v0.1.0
	github.com/weft-go/weft/tokenizers v0.1.0
	pgregory.net/rapid v1.3.0
)

require (
	github.com/maypok86/otter/v2 v2.4.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)

replace (
	github.com/weft-go/weft/parsers => ../../parsers
	github.com/weft-go/weft/protocols => ../../protocols
	github.com/weft-go/weft/tokenizers => ..
)
