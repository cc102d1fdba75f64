module github.com/weft-go/weft/parsers

go 1.26.0

require (
	github.com/google/go-cmp v0.7.0
	github.com/stretchr/testify v1.12.1
	github.com/weft-go/weft/protocols v0.1.0
)

require go.yaml.in/yaml/v3 v3.0.5 // indirect

replace github.com/weft-go/weft/protocols => ../protocols
