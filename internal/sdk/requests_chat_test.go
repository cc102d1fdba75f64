// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"context"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"

	"github.com/weft-go/weft/protocols/chat"
)

type (
	chatMessages = []openai.ChatCompletionMessageParamUnion
	object       = map[string]any
)

// schema is a JSON schema as a program builds it.
var schema = object{
	"type": "object", "properties": object{"path": object{"type": "string", "description": "a <path> & \"more\""}}, "required": []string{"path"},
	"additionalProperties": false,
}

const schemaJSON = `{"additionalProperties":false,"properties":{"path":{"description":"a <path> & \"more\"","type":"string"}},"required":["path"],"type":"object"}`

const pixel = "data:image/png;base64,aWs="

func chatRequest(p openai.ChatCompletionNewParams, opts ...option.RequestOption) func(d *desk) error {
	return func(d *desk) error {
		_, err := d.openai.Chat.Completions.New(context.Background(), p, opts...)
		return err
	}
}

// TestChatRequests sees what the OpenAI SDK sends to the chat API read as it was meant.
func TestChatRequests(t *testing.T) {
	get := openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
		Name: "get", Description: openai.String("reads"), Parameters: schema, Strict: openai.Bool(true),
	})
	patchTool := openai.ChatCompletionCustomTool(openai.ChatCompletionCustomToolCustomParam{
		Name: "apply_patch", Description: openai.String("edits"),
		Format: openai.ChatCompletionCustomToolCustomFormatUnionParam{OfGrammar: &openai.ChatCompletionCustomToolCustomFormatGrammarParam{
			Grammar: openai.ChatCompletionCustomToolCustomFormatGrammarGrammarParam{Definition: "start: /.+/", Syntax: "lark"},
		}},
	})
	one := chatMessages{openai.UserMessage("?")}
	checkRequests(t, chatAPI, "/v1/chat/completions", chat.Decode, []request{
		{
			name: "plain",
			send: chatRequest(openai.ChatCompletionNewParams{Model: model, Messages: one}),
			want: `
params model="demo"
sampling
user turn_start
  text text="?"`,
		},
		{
			name: "stream",
			send: func(d *desk) error {
				d.stream(chatAPI.encode(setup{}, example(), false))
				s := d.openai.Chat.Completions.NewStreaming(context.Background(), chatParams())
				defer s.Close()
				for s.Next() {
				}
				return s.Err()
			},
			want: `
params model="demo" stream usage
sampling
user turn_start
  text text="?"`,
		},
		{
			name: "all scalars",
			send: chatRequest(openai.ChatCompletionNewParams{
				Model: "org/demo", Messages: one, FrequencyPenalty: openai.Float(0.5), PresencePenalty: openai.Float(-0.25), Logprobs: openai.Bool(true),
				TopLogprobs: openai.Int(3), MaxCompletionTokens: openai.Int(77), MaxTokens: openai.Int(78), N: openai.Int(2),
				PromptCacheKey: openai.String("key"), SafetyIdentifier: openai.String("safe"), Seed: openai.Int(-9007199254740993),
				Store: openai.Bool(false), Temperature: openai.Float(0), TopP: openai.Float(1e-7), User: openai.String("u\"1"),
				LogitBias: map[string]int64{"50256": -100}, Metadata: shared.Metadata{"k": "v"}, Modalities: []string{"text"},
				PromptCacheRetention: "24h", ReasoningEffort: shared.ReasoningEffortXhigh, ServiceTier: openai.ChatCompletionNewParamsServiceTierFlex,
				Stop:               openai.ChatCompletionNewParamsStopUnion{OfStringArray: []string{"\n\n", "</s>"}},
				Verbosity:          openai.ChatCompletionNewParamsVerbosityLow,
				PromptCacheOptions: openai.ChatCompletionNewParamsPromptCacheOptions{Mode: "explicit", Ttl: "30m"},
				Prediction: openai.ChatCompletionPredictionContentParam{
					Content: openai.ChatCompletionPredictionContentContentUnionParam{OfString: openai.String("guess")},
				},
				WebSearchOptions: openai.ChatCompletionNewParamsWebSearchOptions{SearchContextSize: "low"},
			}),
			want: `
params model="org/demo" max=77 verbosity="low" user="u\"1" key="key" tier="flex"
sampling temperature=0 top_p=1e-07 seed=-9007199254740993 n=2 frequency=0.5 presence=-0.25 logprobs top=3 stop=["\n\n" "</s>"][]
thinking effort="xhigh"
user turn_start
  text text="?"`,
		},
		{
			name: "extensions of engines",
			send: chatRequest(openai.ChatCompletionNewParams{Model: model, Messages: one, Stop: openai.ChatCompletionNewParamsStopUnion{OfString: openai.String("x")}},
				option.WithJSONSet("top_k", 40), option.WithJSONSet("min_p", 0.1), option.WithJSONSet("repetition_penalty", 1.1),
				option.WithJSONSet("ignore_eos", true), option.WithJSONSet("stop_token_ids", []int{2, 3}),
				option.WithJSONSet("chat_template_kwargs", object{"enable_thinking": false}), option.WithJSONSet("nvext", object{"annotations": []string{"x"}})),
			want: `
params model="demo"
sampling min_p=0.1 top_k=40 repetition=1.1 ignore_eos stop=["x"][2 3]
user turn_start
  text text="?"`,
		},
		{
			name: "every role",
			send: chatRequest(openai.ChatCompletionNewParams{Model: model, Messages: chatMessages{
				openai.SystemMessage("s"), openai.DeveloperMessage([]openai.ChatCompletionContentPartTextParam{{Text: "d"}, {Text: "e"}}),
				{OfUser: &openai.ChatCompletionUserMessageParam{Name: openai.String("ann"), Content: openai.ChatCompletionUserMessageParamContentUnion{OfString: openai.String("u")}}},
				openai.AssistantMessage("a"), openai.SystemMessage("in the middle"), openai.UserMessage("<system-reminder>\nr\n</system-reminder>"),
			}}),
			want: `
params model="demo"
sampling
system
  text text="s"
developer
  text type="text" text="d"
  text type="text" text="e"
user turn_start name="ann"
  text text="u"
assistant
  text text="a"
system
  text text="in the middle"
user
  text text="<system-reminder>\nr\n</system-reminder>"`,
		},
		{
			name: "parts",
			send: chatRequest(openai.ChatCompletionNewParams{Model: model, Messages: chatMessages{openai.UserMessage([]openai.ChatCompletionContentPartUnionParam{
				{OfText: &openai.ChatCompletionContentPartTextParam{Text: "look: é 😀 </a>\u2028", PromptCacheBreakpoint: openai.NewChatCompletionContentPartTextPromptCacheBreakpointParam()}},
				openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: pixel, Detail: "high"}),
				openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: "https://x/y.png"}),
				openai.InputAudioContentPart(openai.ChatCompletionContentPartInputAudioInputAudioParam{Data: "UklGRg==", Format: "wav"}),
				openai.FileContentPart(openai.ChatCompletionContentPartFileFileParam{FileID: openai.String("file-1")}),
				openai.FileContentPart(openai.ChatCompletionContentPartFileFileParam{FileData: openai.String("data:application/pdf;base64,JVBERg=="), Filename: openai.String("a.pdf")}),
			})}}),
			want: `
params model="demo"
sampling
user turn_start
  text type="text" text="look: é 😀 </a>\u2028" cache=explicit
  image type="image_url" mime="image/png" data="aWs=" detail="high"
  image type="image_url" url="https://x/y.png"
  audio type="input_audio" mime="audio/wav" data="UklGRg=="
  file type="file" file="file-1"
  file type="file" mime="application/pdf" data="JVBERg==" called="a.pdf"`,
		},
		{
			name: "tools",
			send: chatRequest(openai.ChatCompletionNewParams{
				Model: model, Messages: one, ParallelToolCalls: openai.Bool(false),
				Tools: []openai.ChatCompletionToolUnionParam{get, patchTool, openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: "bare"}),
					openai.ChatCompletionCustomTool(openai.ChatCompletionCustomToolCustomParam{Name: "free"})},
				ToolChoice: openai.ChatCompletionToolChoiceOptionUnionParam{OfAuto: openai.String("required")},
			}),
			want: `
params model="demo"
sampling
choice required serial
tool function type="function" name="get" about="reads" schema=` + schemaJSON + ` strict=true
tool custom type="custom" name="apply_patch" about="edits" format={"grammar":{"definition":"start: /.+/","syntax":"lark"},"type":"grammar"}
tool function type="function" name="bare"
tool custom type="custom" name="free"
user turn_start
  text text="?"`,
		},
		{
			name: "named tool",
			send: chatRequest(openai.ChatCompletionNewParams{
				Model: model, Messages: one, ToolChoice: openai.ToolChoiceOptionFunctionToolChoice(openai.ChatCompletionNamedToolChoiceFunctionParam{Name: "get"}),
			}),
			want: `
params model="demo"
sampling
choice required allow=["get"]
user turn_start
  text text="?"`,
		},
		{
			name: "named custom tool",
			send: chatRequest(openai.ChatCompletionNewParams{
				Model: model, Messages: one, ToolChoice: openai.ToolChoiceOptionCustomToolChoice(openai.ChatCompletionNamedToolChoiceCustomCustomParam{Name: "apply_patch"}),
			}),
			want: `
params model="demo"
sampling
choice required allow=["apply_patch"]
user turn_start
  text text="?"`,
		},
		{
			name: "allowed tools",
			send: chatRequest(openai.ChatCompletionNewParams{
				Model: model, Messages: one, ToolChoice: openai.ToolChoiceOptionAllowedTools(openai.ChatCompletionAllowedToolsParam{
					Mode: "required", Tools: []map[string]any{{"type": "function", "function": object{"name": "get"}}, {"type": "custom", "custom": object{"name": "apply_patch"}}},
				}),
			}),
			want: `
params model="demo"
sampling
choice required allow=["get" "apply_patch"]
user turn_start
  text text="?"`,
		},
		{
			name: "conversation with tools",
			send: chatRequest(openai.ChatCompletionNewParams{Model: model, Messages: chatMessages{
				openai.UserMessage("read"),
				{OfAssistant: &openai.ChatCompletionAssistantMessageParam{
					Content: openai.ChatCompletionAssistantMessageParamContentUnion{OfString: openai.String("Looking.")},
					ToolCalls: []openai.ChatCompletionMessageToolCallUnionParam{
						{OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{ID: "functions.get:0", Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{
							Name: "get", Arguments: `{ "path": "a<b>.go", "n":1.50}`,
						}}},
						{OfCustom: &openai.ChatCompletionMessageCustomToolCallParam{ID: "call_2", Custom: openai.ChatCompletionMessageCustomToolCallCustomParam{
							Name: "apply_patch", Input: patch,
						}}},
						{OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{ID: "call_3", Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{
							Name: "get", Arguments: `{"path": broken`,
						}}},
					},
				}},
				openai.ToolMessage("two", "call_2"),
				openai.ToolMessage([]openai.ChatCompletionContentPartTextParam{{Text: "one"}, {Text: "more"}}, "functions.get:0"),
				openai.ToolMessage("", "call_3"),
				{OfAssistant: &openai.ChatCompletionAssistantMessageParam{Refusal: openai.String("no")}},
				{OfAssistant: &openai.ChatCompletionAssistantMessageParam{
					Content: openai.ChatCompletionAssistantMessageParamContentUnion{OfArrayOfContentParts: []openai.ChatCompletionAssistantMessageParamContentArrayOfContentPartUnion{
						{OfText: &openai.ChatCompletionContentPartTextParam{Text: "t"}}, {OfRefusal: &openai.ChatCompletionContentPartRefusalParam{Refusal: "r"}},
					}},
					//lint:ignore SA1019 old conversations have it
					FunctionCall: openai.ChatCompletionAssistantMessageParamFunctionCall{Name: "old", Arguments: "{}"},
				}},
			}}),
			want: `
params model="demo"
sampling
user turn_start
  text text="read"
assistant
  text text="Looking."
  tool_call type="function" call="functions.get:0" name="get" args={ "path": "a<b>.go", "n":1.50}
  tool_call type="custom" call="call_2" name="apply_patch" args=` + patch + ` custom
  tool_call type="function" call="call_3" name="get" args={"path": broken
tool tool_continuation
  tool_result call="call_2"
    text text="two"
tool tool_continuation
  tool_result call="functions.get:0"
    text type="text" text="one"
    text type="text" text="more"
tool tool_continuation
  tool_result call="call_3"
    text
assistant
  refusal text="no"
assistant
  text type="text" text="t"
  refusal type="refusal" text="r"
  tool_call name="old" args={}`,
		},
		{
			name: "text format",
			send: chatRequest(openai.ChatCompletionNewParams{Model: model, Messages: one, ResponseFormat: openai.ChatCompletionNewParamsResponseFormatUnion{OfText: &shared.ResponseFormatTextParam{}}}),
			want: `
params model="demo"
sampling
format text
user turn_start
  text text="?"`,
		},
		{
			name: "JSON format",
			send: chatRequest(openai.ChatCompletionNewParams{Model: model, Messages: one, ResponseFormat: openai.ChatCompletionNewParamsResponseFormatUnion{OfJSONObject: &shared.ResponseFormatJSONObjectParam{}}}),
			want: `
params model="demo"
sampling
format json_object
user turn_start
  text text="?"`,
		},
		{
			name: "schema format",
			send: chatRequest(openai.ChatCompletionNewParams{Model: model, Messages: one, ResponseFormat: openai.ChatCompletionNewParamsResponseFormatUnion{OfJSONSchema: &shared.ResponseFormatJSONSchemaParam{
				JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "answer", Description: openai.String("d"), Strict: openai.Bool(true), Schema: schema},
			}}}),
			want: `
params model="demo"
sampling
format json_schema name="answer" schema=` + schemaJSON + ` strict=true
user turn_start
  text text="?"`,
		},
	})
}
