module github.com/weft-go/weft/internal/sdk

go 1.26.0

require (
	github.com/anthropics/anthropic-sdk-go/v2 v2.13.0
	github.com/google/go-cmp v0.7.0
	github.com/openai/openai-go/v3 v3.96.0
	github.com/stretchr/testify v1.12.1
	github.com/tidwall/gjson v1.20.0
	github.com/weft-go/weft/examples v0.1.0
	github.com/weft-go/weft/protocols v0.1.0
	github.com/weft-go/weft/tokenizers v0.1.0
	github.com/weft-go/weft/tokenizers/prompt v0.1.0
	pgregory.net/rapid v1.3.0
)

require (
	github.com/bahlo/generic-list-go v0.2.0 // indirect
	github.com/buger/jsonparser v1.1.2 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/coder/websocket v1.8.15 // indirect
	github.com/go-logr/logr v1.4.4 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	github.com/invopop/jsonschema v0.14.0 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/klauspost/cpuid/v2 v2.2.10 // indirect
	github.com/maypok86/otter/v2 v2.4.0 // indirect
	github.com/pb33f/ordered-map/v2 v2.3.1 // indirect
	github.com/standard-webhooks/standard-webhooks/libraries v0.0.1 // indirect
	github.com/tidwall/match v1.1.1 // indirect
	github.com/tidwall/pretty v1.2.1 // indirect
	github.com/tidwall/sjson v1.2.5 // indirect
	github.com/weft-go/weft/kvhash v0.1.0 // indirect
	github.com/weft-go/weft/parsers v0.1.0 // indirect
	github.com/weft-go/weft/router v0.1.0 // indirect
	github.com/zeebo/xxh3 v1.1.0 // indirect
	go.opentelemetry.io/auto/sdk v1.2.1 // indirect
	go.opentelemetry.io/otel v1.47.0 // indirect
	go.opentelemetry.io/otel/log v1.47.0 // indirect
	go.opentelemetry.io/otel/metric v1.47.0 // indirect
	go.opentelemetry.io/otel/trace v1.47.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	go.yaml.in/yaml/v4 v4.0.0-rc.2 // indirect
	golang.org/x/sync v0.23.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
	golang.org/x/time v0.14.0 // indirect
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
