// SPDX-License-Identifier: Apache-2.0

package block

import "github.com/weft-go/weft/protocols/internal/jsonscan"

// Engine is what requests of the OpenAI APIs say beyond those APIs, to vLLM, SGLang or Dynamo. Fields that a request does
// not have are zero; raw JSON is a view of the request. Names are those of the engines; a comment names the ones that go by
// several. A field of a type that no engine takes reads as absent: whether to refuse it is the engine's decision.
type Engine struct {
	// Tokens and text.
	MinTokens           *int64
	SkipSpecialTokens   *bool
	SpacesBetween       *bool // spaces_between_special_tokens
	IncludeStop         bool  // include_stop_str_in_output
	NoStopTrim          bool  // SGLang
	TruncatePrompt      *int64
	TruncationSide      string
	AllowedTokens       []int64
	BadWords            []string
	BadWordTokens       []byte // bad_words_token_ids, Dynamo
	LogprobTokens       []int64
	PromptLogprobs      *int64
	ReturnTokenIDs      bool
	TokensAsIDs         bool // return_tokens_as_token_ids
	ReturnHiddenStates  bool
	Detokenize          *bool
	Echo                bool
	BeamSearch          bool
	LengthPenalty       *float64
	Watermarking        []byte
	SamplingSeed        *int64 // SGLang
	SamplingParams      []byte // custom_params and the like that a caller nests in sampling_params
	LogitsProcessors    []byte
	PromptEmbeds        []byte // Dynamo
	AddSpecialTokens    *bool
	AddGenerationPrompt *bool

	// Prompt.
	ChatTemplate       string
	ChatTemplateKwargs []byte // also chat_template_args, Dynamo
	ContinueFinal      bool   // continue_final_message
	Documents          []byte
	MediaKwargs        []byte // media_io_kwargs
	ProcessorKwargs    []byte // mm_processor_kwargs

	// Reasoning.
	ThinkingBudget    *int64 // thinking_token_budget
	IncludeReasoning  *bool
	SeparateReasoning *bool // SGLang
	StreamReasoning   *bool // SGLang

	// Guided output: structured_outputs, the guided_ fields before it, or SGLang's regex and ebnf.
	Guided Guided

	// Serving.
	Priority      *int64 // as written: its polarity is the engine's
	RequestID     string // request_id, rid
	SessionID     string
	SessionParams []byte // SGLang
	CacheSalt     string
	LoraPath      string // SGLang
	KVTransfer    []byte // kv_transfer_params
	ECTransfer    []byte // ec_transfer_params
	NvExt         []byte // Dynamo
}

// Guided is what constrains the output besides response_format. At most one of the first five is set in a sane request.
type Guided struct {
	JSON          []byte // a schema, or a string that holds one
	Regex         string
	Choice        []string
	Grammar       string // also ebnf, SGLang
	StructuralTag []byte
	Backend       string // guided_decoding_backend
	Whitespace    string // guided_whitespace_pattern
}

// Engine reads what the request says to engines. It looks into the body each time.
func (r *Request) Engine() Engine {
	root := r.Value()
	var f fields
	e := Engine{
		MinTokens: f.int(root, "min_tokens"), SkipSpecialTokens: f.bool(root, "skip_special_tokens"),
		SpacesBetween: f.bool(root, "spaces_between_special_tokens"), IncludeStop: f.is(root, "include_stop_str_in_output"),
		NoStopTrim: f.is(root, "no_stop_trim"), TruncatePrompt: f.int(root, "truncate_prompt_tokens"),
		TruncationSide: f.str(root, "truncation_side"), AllowedTokens: f.ints(root, "allowed_token_ids"),
		BadWords: f.strs(root, "bad_words"), BadWordTokens: f.raw(root, "bad_words_token_ids"),
		LogprobTokens: f.ints(root, "logprob_token_ids"), PromptLogprobs: f.int(root, "prompt_logprobs"),
		ReturnTokenIDs: f.is(root, "return_token_ids"), TokensAsIDs: f.is(root, "return_tokens_as_token_ids"),
		ReturnHiddenStates: f.is(root, "return_hidden_states"), Detokenize: f.bool(root, "detokenize"), Echo: f.is(root, "echo"),
		BeamSearch: f.is(root, "use_beam_search"), LengthPenalty: f.float(root, "length_penalty"),
		Watermarking: f.raw(root, "watermarking"), SamplingSeed: f.int(root, "sampling_seed"),
		SamplingParams: f.raw(root, "sampling_params"), LogitsProcessors: f.raw(root, "logits_processors"),
		PromptEmbeds: f.raw(root, "prompt_embeds"), AddSpecialTokens: f.bool(root, "add_special_tokens"),
		AddGenerationPrompt: f.bool(root, "add_generation_prompt"),

		ChatTemplate: f.str(root, "chat_template"), ChatTemplateKwargs: f.raw(root, "chat_template_kwargs"),
		ContinueFinal: f.is(root, "continue_final_message"), Documents: f.raw(root, "documents"),
		MediaKwargs: f.raw(root, "media_io_kwargs"), ProcessorKwargs: f.raw(root, "mm_processor_kwargs"),

		ThinkingBudget: f.int(root, "thinking_token_budget"), IncludeReasoning: f.bool(root, "include_reasoning"),
		SeparateReasoning: f.bool(root, "separate_reasoning"), StreamReasoning: f.bool(root, "stream_reasoning"),

		Priority: f.int(root, "priority"), RequestID: f.str(root, "request_id"), SessionID: f.str(root, "session_id"),
		SessionParams: f.raw(root, "session_params"), CacheSalt: f.str(root, "cache_salt"), LoraPath: f.str(root, "lora_path"),
		KVTransfer: f.raw(root, "kv_transfer_params"), ECTransfer: f.raw(root, "ec_transfer_params"), NvExt: f.raw(root, "nvext"),
	}
	if e.ChatTemplateKwargs == nil {
		e.ChatTemplateKwargs = f.raw(root, "chat_template_args")
	}
	if e.RequestID == "" {
		e.RequestID = f.str(root, "rid")
	}
	so := root.Get("structured_outputs")
	g := &e.Guided
	g.JSON, g.Regex, g.Choice = f.raw(so, "json"), f.str(so, "regex"), f.strs(so, "choice")
	g.Grammar, g.StructuralTag = f.str(so, "grammar"), f.raw(so, "structural_tag")
	if g.JSON == nil {
		g.JSON = f.raw(root, "guided_json")
	}
	if g.Choice == nil {
		g.Choice = f.strs(root, "guided_choice")
	}
	for _, name := range []string{"guided_regex", "regex"} {
		if g.Regex == "" {
			g.Regex = f.str(root, name)
		}
	}
	for _, name := range []string{"guided_grammar", "ebnf"} {
		if g.Grammar == "" {
			g.Grammar = f.str(root, name)
		}
	}
	if g.StructuralTag == nil {
		g.StructuralTag = f.raw(root, "structural_tag")
	}
	g.Backend, g.Whitespace = f.str(root, "guided_decoding_backend"), f.str(root, "guided_whitespace_pattern")
	return e
}

// LogitBias returns logit_bias of the OpenAI APIs by token id as written, nil if absent.
func (r *Request) LogitBias() map[string]float64 {
	v := r.Value("logit_bias")
	if !v.First().Exists() {
		return nil
	}
	m := make(map[string]float64, v.Len())
	for e := v.First(); e.Exists(); e = v.Next(e) {
		if x, ok := e.Float(); ok {
			m[e.Key()] = x
		}
	}
	return m
}

// fields reads members by name. Members of other types than asked for read as absent.
type fields struct{}

func (fields) str(v jsonscan.Value, name string) string {
	s, _ := v.Get(name).Str(nil)
	return s
}

func (fields) raw(v jsonscan.Value, name string) []byte {
	if v = v.Get(name); v.IsNull() {
		return nil
	}
	return v.Raw()
}

func (fields) int(v jsonscan.Value, name string) *int64 {
	if n, ok := v.Get(name).Int(); ok {
		return &n
	}
	return nil
}

func (fields) float(v jsonscan.Value, name string) *float64 {
	if x, ok := v.Get(name).Float(); ok {
		return &x
	}
	return nil
}

func (fields) bool(v jsonscan.Value, name string) *bool {
	if b, ok := v.Get(name).Bool(); ok {
		return &b
	}
	return nil
}

func (fields) is(v jsonscan.Value, name string) bool {
	b, _ := v.Get(name).Bool()
	return b
}

func (fields) ints(v jsonscan.Value, name string) (list []int64) {
	v = v.Get(name)
	for e := v.First(); e.Exists() && v.Kind() == jsonscan.Array; e = v.Next(e) {
		if n, ok := e.Int(); ok {
			list = append(list, n)
		}
	}
	return list
}

func (fields) strs(v jsonscan.Value, name string) (list []string) {
	v = v.Get(name)
	for e := v.First(); e.Exists() && v.Kind() == jsonscan.Array; e = v.Next(e) {
		if s, ok := e.Str(nil); ok {
			list = append(list, s)
		}
	}
	return list
}

// Field returns the raw JSON of a member of the block's own object, known to this package or not, for example citations or
// caller; nil if there is none. It looks into the body, or, of a detached request, into what no field of Block says.
func (b *Block) Field(name string) []byte { return memberOf(b.At, b.rest, name) }

// Field returns the raw JSON of a member of the message or item that the turn begins with, for example status or phase; nil if
// there is none. See [Block.Field].
func (t *Turn) Field(name string) []byte {
	if t.At.doc == nil && t.rest != nil && t.rest.size > 0 { // a list of items
		for _, in := range t.rest.inner {
			if in.index == 0 {
				return memberOf(Ref{}, in.res, name)
			}
		}
		return nil
	}
	return memberOf(t.At, t.rest, name)
}

// Field returns the raw JSON of a member of the tool's declaration, for example input_examples; nil if there is none. See
// [Block.Field].
func (t *Tool) Field(name string) []byte { return memberOf(t.At, t.rest, name) }

func memberOf(at Ref, rest *residue, name string) []byte {
	if at.doc != nil {
		return fields{}.raw(ValueOf(at), name)
	}
	if rest == nil {
		return nil
	}
	for _, x := range rest.add {
		if x.key == name && string(x.value) != "null" {
			return x.value
		}
	}
	return nil
}
