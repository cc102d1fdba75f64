module github.com/weft-go/weft/internal/bench

go 1.26.0

require (
	github.com/ollama/ollama v0.30.0
	github.com/stretchr/testify v1.12.1
	github.com/weft-go/weft/examples v0.1.0
	github.com/weft-go/weft/kvhash v0.1.0
	github.com/weft-go/weft/parsers v0.1.0
	github.com/weft-go/weft/protocols v0.1.0
	github.com/weft-go/weft/router v0.1.0
	github.com/weft-go/weft/tokenizers v0.1.0
	github.com/weft-go/weft/tokenizers/prompt v0.1.0
	golang.org/x/sys v0.48.0
)

require (
	github.com/bahlo/generic-list-go v0.2.0 // indirect
	github.com/buger/jsonparser v1.1.1 // indirect
	github.com/coder/websocket v1.8.15 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/klauspost/cpuid/v2 v2.2.10 // indirect
	github.com/mailru/easyjson v0.7.7 // indirect
	github.com/maypok86/otter/v2 v2.4.0 // indirect
	github.com/wk8/go-ordered-map/v2 v2.1.8 // indirect
	github.com/zeebo/xxh3 v1.1.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/crypto v0.43.0 // indirect
	golang.org/x/time v0.14.0 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)

replace (
	github.com/weft-go/weft/examples => ../../examples
	github.com/weft-go/weft/examples/gateway/otel => ../../examples/gateway/otel
	github.com/weft-go/weft/kvhash => ../../kvhash
	github.com/weft-go/weft/parsers => ../../parsers
	github.com/weft-go/weft/protocols => ../../protocols
	github.com/weft-go/weft/router => ../../router
	github.com/weft-go/weft/router/zmq => ../../router/zmq
	github.com/weft-go/weft/tokenizers => ../../tokenizers
	github.com/weft-go/weft/tokenizers/prompt => ../../tokenizers/prompt
)
