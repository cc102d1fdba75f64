// SPDX-License-Identifier: Apache-2.0

package conformance

// agreedExceptions are the records whose agreed result contradicts the written policy.
var agreedExceptions = map[string]reason{
	"tool/deepseek_v4/batch.2.c": trailingTextKept,
	"tool/deepseek_v4/batch.8.c": trailingTextKept,
	"tool/deepseek_v4/batch.8.d": trailingTextKept,
	"tool/kimi_k2/batch.2.c":     trailingTextKept,
	"tool/kimi_k2/batch.8.d":     trailingTextKept,
	"tool/phi4/batch.8.b":        trailingTextKept,
	"tool/qwen25/batch.8.d":      trailingTextKept,
	"tool/qwen3_coder/batch.8.c": trailingTextKept,
	"tool/qwen3_coder/batch.8.d": trailingTextKept,

	"reasoning/gpt_oss/batch.1.b":  unframedIsShown,
	"reasoning/gpt_oss/stream.1.b": unframedIsShown,
	"reasoning/gpt_oss/stream.3.c": unframedIsShown,

	"tool/hermes/batch.5.c":      partialCall,
	"tool/qwen3_coder/batch.5.c": partialCall,

	"tool/deepseek_v3_2/batch.4.d": unclosedValue,
	"tool/deepseek_v4/batch.4.d":   unclosedValue,
}

// dynamoExceptions are the records on which the Dynamo profile differs from Dynamo.
var dynamoExceptions = map[string]reason{
	"reasoning/deepseek_r1/batch.6.a": trimsOnlyWhole,
	"reasoning/kimi/batch.6.a":        trimsOnlyWhole,
	"reasoning/kimi_k25/batch.6.a":    trimsOnlyWhole,
	"reasoning/granite/stream.2.a":    trimsOnlyWhole,
	"reasoning/granite/stream.2.b":    trimsOnlyWhole,
	"reasoning/granite/stream.3.a":    trimsOnlyWhole,

	"reasoning/nemotron_deci/batch.4": needsWholeText,
	"reasoning/granite/batch.2.d":     needsWholeText,
	"tool/glm47/stream.4.c":           needsWholeText,
	"tool/nemotron_deci/batch.5.b":    needsWholeText,
	"tool/phi4/stream.4.c":            needsWholeText,

	"tool/phi4/batch.5.e":          losesText,
	"tool/mistral/batch.8.d":       losesText,
	"tool/nemotron_deci/batch.8.d": losesText,
	"tool/llama3_json/stream.2":    losesText,

	"tool/hermes/batch.5.d":        forgetsUnclosed,
	"tool/deepseek_v3_2/batch.4.d": unclosedValue,
	"tool/deepseek_v4/batch.4.d":   unclosedValue,
	"reasoning/gpt_oss/batch.3.a":  rawFrames,
	"reasoning/gpt_oss/batch.3.f":  rawFrames,
	"tool/mistral/batch.4.c":       namelessIsDropped,
	"tool/gemma4/batch.4.d":        wrongCloser,
	"tool/gemma4/batch.5.g":        unmarkedCall,
	"tool/gemma4/stream.4.c":       unmarkedCall,
}
