// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"math"

	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/internal/jsonscan"
)

// quiet lists the parameters that do not affect the prompt, in the spellings of all APIs.
var quiet = map[string]bool{
	"max_tokens": true, "max_completion_tokens": true, "max_output_tokens": true, "stream": true, "stream_options": true, "n": true,
	"best_of": true, "seed": true, "stop": true, "stop_sequences": true, "stop_token_ids": true, "temperature": true, "top_p": true,
	"top_k": true, "min_p": true, "frequency_penalty": true, "presence_penalty": true, "repetition_penalty": true,
	"logit_bias": true, "logprobs": true, "top_logprobs": true, "ignore_eos": true, "service_tier": true, "user": true,
	"metadata": true, "store": true, "safety_identifier": true, "prompt_cache_key": true, "prompt_cache_retention": true,
	"priority": true, "cache_salt": true, "nvext": true,
}

// Count implements the packages' EncodeCount: it appends the body of a request that counts the tokens of a prompt, with
// only the fields that keep reports. encode is the API's Encode. Losses of parameters that do not affect the prompt are
// omitted.
func Count(dst []byte, r *block.Request, opt *block.EncodeOptions, keep func(name string) bool,
	encode func([]byte, *block.Request, *block.EncodeOptions) ([]byte, []block.Loss, error)) ([]byte, []block.Loss, error) {
	body, all, err := encode(nil, r, nil)
	if err != nil {
		return dst, nil, err
	}
	var losses []block.Loss
	for _, l := range all {
		if !quiet[l.Path] {
			losses = append(losses, l)
		}
	}
	if opt != nil && opt.Strict && len(losses) > 0 {
		return dst, losses, &block.Error{Kind: block.Unsupported, Path: losses[0].Path, Offset: -1, Msg: losses[0].Why}
	}
	doc, err := jsonscan.Scan(body, jsonscan.Limits{Bytes: math.MaxInt32, Depth: math.MaxInt16, Values: math.MaxInt32})
	if err != nil {
		return dst, nil, err // cannot happen: our encoders write valid JSON
	}
	root := doc.Root()
	e := jsonscan.NewEdits(doc)
	for m := root.First(); m.Exists(); m = root.Next(m) {
		if !keep(m.Key()) {
			e.Delete(root, m)
		}
	}
	return e.Append(dst), losses, nil
}
