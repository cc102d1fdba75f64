// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"context"
	"encoding/base32"
	"encoding/json"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/param"

	"github.com/weft-go/weft/protocols/messages"
)

func messageRequest(p anthropic.MessageNewParams, opts ...option.RequestOption) func(d *desk) error {
	return func(d *desk) error {
		p.Model, p.MaxTokens = model, 1000
		_, err := d.claude.Messages.New(context.Background(), p, opts...)
		return err
	}
}

// TestMessagesRequests sees what the Anthropic SDK sends read as it was meant.
func TestMessagesRequests(t *testing.T) {
	one := []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("?"))}
	short := anthropic.CacheControlEphemeralParam{}
	short.Type = short.Type.Default()
	long := anthropic.CacheControlEphemeralParam{TTL: anthropic.CacheControlEphemeralTTLTTL1h}
	input := anthropic.ToolInputSchemaParam{Properties: object{"path": object{"type": "string"}}, Required: []string{"path"}}
	const inputJSON = `{"properties":{"path":{"type":"string"}},"required":["path"],"type":"object"}`
	// How an id of the model that this API forbids was sent to the client.
	escapedID := "tc_x" + base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString([]byte("functions.get:0"))
	choice := func(c anthropic.ToolChoiceUnionParam) func(d *desk) error {
		return messageRequest(anthropic.MessageNewParams{Messages: one, ToolChoice: c})
	}
	thinking := func(c anthropic.ThinkingConfigParamUnion) func(d *desk) error {
		return messageRequest(anthropic.MessageNewParams{Messages: one, Thinking: c})
	}
	checkRequests(t, messagesAPI, "/v1/messages", messages.Decode, []request{
		{
			name: "plain",
			send: messageRequest(anthropic.MessageNewParams{Messages: one}),
			want: `
params model="demo" max=1000
sampling
user turn_start
  text type="text" text="?"`,
		},
		{
			name: "stream",
			send: func(d *desk) error {
				d.stream(messagesAPI.encode(setup{}, example(), false))
				s := d.claude.Messages.NewStreaming(context.Background(), messageParams())
				defer s.Close()
				for s.Next() {
				}
				return s.Err()
			},
			want: `
params model="demo" stream max=1000
sampling
user turn_start
  text type="text" text="?"`,
		},
		{
			name: "all scalars",
			send: messageRequest(anthropic.MessageNewParams{
				Messages: one, InferenceGeo: anthropic.String("eu"),
				Container: anthropic.MessageCreateParamsContainerUnion{OfString: anthropic.String("cont_1")}, CacheControl: short,
				Metadata: anthropic.MetadataParam{UserID: anthropic.String(`{"session_id":"s"}`)}, ServiceTier: anthropic.MessageNewParamsServiceTierStandardOnly,
				StopSequences: []string{"\n\nHuman:", "</s>"}, OutputConfig: anthropic.OutputConfigParam{Effort: anthropic.OutputConfigEffortMax, Format: anthropic.JSONOutputFormatParam{Schema: schema}},
			}, option.WithHeader("anthropic-version", "2023-06-01"), // the last one with sampling
				option.WithJSONSet("temperature", 0.5), option.WithJSONSet("top_k", 40), option.WithJSONSet("top_p", 0.9)),
			want: `
params model="demo" max=1000 user="{\"session_id\":\"s\"}" tier="standard_only"
sampling temperature=0.5 top_p=0.9 top_k=40 stop=["\n\nHuman:" "</s>"][]
thinking effort="max"
format json_schema schema=` + strings.NewReplacer("<", `\u003c`, ">", `\u003e`, "&", `\u0026`).Replace(schemaJSON) + `
user turn_start
  text type="text" text="?"`,
		},
		{
			name: "beta fields",
			send: messageRequest(anthropic.MessageNewParams{Messages: one},
				option.WithHeader("anthropic-beta", "context-management-2025-06-27"), option.WithQuery("beta", "true"),
				option.WithJSONSet("context_management", object{"edits": []any{object{"type": "clear_thinking_20251015"}}}),
				option.WithJSONSet("mcp_servers", []any{object{"type": "url", "url": "https://x", "name": "n"}})),
			want: `
params model="demo" max=1000
sampling
user turn_start
  text type="text" text="?"`,
		},
		{
			name: "system",
			send: messageRequest(anthropic.MessageNewParams{
				System: []anthropic.TextBlockParam{{Text: "s"}, {Text: "t", CacheControl: short}, {Text: "u", CacheControl: long}},
				Messages: []anthropic.MessageParam{
					anthropic.NewUserMessage(anthropic.NewTextBlock("?")),
					{OfSystem: &anthropic.SystemMessageParam{Content: []anthropic.TextBlockParam{{Text: "in the middle"}}}},
					anthropic.NewAssistantMessage(anthropic.NewTextBlock("prefill")),
				},
			}),
			want: `
params model="demo" max=1000
sampling
system
  text type="text" text="s"
  text type="text" text="t" cache=ephemeral
  text type="text" text="u" cache=ephemeral/1h
user turn_start
  text type="text" text="?"
system
  text type="text" text="in the middle"
assistant
  text type="text" text="prefill"`,
		},
		{
			name: "blocks",
			send: messageRequest(anthropic.MessageNewParams{Messages: []anthropic.MessageParam{anthropic.NewUserMessage(
				anthropic.ContentBlockParamUnion{OfText: &anthropic.TextBlockParam{Text: "look: é 😀 </a>", CacheControl: short}},
				anthropic.NewImageBlockBase64("image/png", "aWs="),
				anthropic.NewImageBlock(anthropic.URLImageSourceParam{URL: "https://x/y.png"}),
				anthropic.ContentBlockParamUnion{OfImage: &anthropic.ImageBlockParam{Source: anthropic.ImageBlockParamSourceUnion{OfFile: &anthropic.FileImageSourceParam{FileID: "file_1"}}, CacheControl: long}},
				anthropic.NewDocumentBlock(anthropic.Base64PDFSourceParam{Data: "JVBERg=="}),
				anthropic.ContentBlockParamUnion{OfDocument: &anthropic.DocumentBlockParam{
					Title: anthropic.String("T"), Context: anthropic.String("C"), Citations: anthropic.CitationsConfigParam{Enabled: anthropic.Bool(true)},
					Source: anthropic.DocumentBlockParamSourceUnion{OfText: &anthropic.PlainTextSourceParam{Data: "plain"}},
				}},
				anthropic.NewDocumentBlock(anthropic.URLPDFSourceParam{URL: "https://x/a.pdf"}),
				anthropic.NewSearchResultBlock([]anthropic.TextBlockParam{{Text: "found"}}, "https://x", "Found"),
				anthropic.NewContainerUploadBlock("file_2"),
			)}}),
			want: `
params model="demo" max=1000
sampling
user turn_start
  text type="text" text="look: é 😀 </a>" cache=ephemeral
  image type="image" mime="image/png" data="aWs="
  image type="image" url="https://x/y.png"
  image type="image" file="file_1" cache=ephemeral/1h
  document type="document" mime="application/pdf" data="JVBERg=="
  document type="document" mime="text/plain" data="plain" called="T"
  document type="document" url="https://x/a.pdf"
  citation type="search_result" name="Found" url="https://x"
    text type="text" text="found"
  file type="container_upload" file="file_2"`,
		},
		{
			name: "conversation with tools",
			send: messageRequest(anthropic.MessageNewParams{Messages: []anthropic.MessageParam{
				anthropic.NewUserMessage(anthropic.NewTextBlock("read")),
				anthropic.NewAssistantMessage(
					anthropic.NewThinkingBlock("c2ln", "I think"), anthropic.NewRedactedThinkingBlock("b3BhcXVl"), anthropic.NewTextBlock("Looking."),
					anthropic.NewToolUseBlock("toolu_1", json.RawMessage(`{"path":"a.go","n":1.50}`), "get"),
					anthropic.NewToolUseBlock(escapedID, object{}, "get"),
					anthropic.NewServerToolUseBlock("srvtoolu_1", object{"query": "x"}, anthropic.ServerToolUseBlockParamNameWebSearch),
					anthropic.NewWebSearchToolResultBlock([]anthropic.WebSearchResultBlockParam{{EncryptedContent: "e", Title: "T", URL: "https://x"}}, "srvtoolu_1"),
				),
				anthropic.NewUserMessage(
					anthropic.NewToolResultBlock("toolu_1", "failed", true),
					anthropic.ContentBlockParamUnion{OfToolResult: &anthropic.ToolResultBlockParam{
						ToolUseID: "toolu_2", CacheControl: short, Content: []anthropic.ToolResultBlockParamContentUnion{
							{OfText: &anthropic.TextBlockParam{Text: "seen"}},
							{OfImage: &anthropic.ImageBlockParam{Source: anthropic.ImageBlockParamSourceUnion{OfBase64: &anthropic.Base64ImageSourceParam{Data: "aWs=", MediaType: "image/png"}}}},
							{OfToolReference: &anthropic.ToolReferenceBlockParam{ToolName: "fetch"}},
						},
					}},
					anthropic.ContentBlockParamUnion{OfToolResult: &anthropic.ToolResultBlockParam{ToolUseID: "toolu_3"}},
					anthropic.NewTextBlock("<system-reminder>r</system-reminder>"),
				),
			}}),
			want: `
params model="demo" max=1000
sampling
user turn_start
  text type="text" text="read"
assistant
  reasoning type="thinking" text="I think" signature="c2ln"
  reasoning type="redacted_thinking" encrypted="b3BhcXVl" redacted
  text type="text" text="Looking."
  tool_call type="tool_use" call="toolu_1" name="get" args={"path":"a.go","n":1.50}
  tool_call type="tool_use" call="functions.get:0" name="get" args={}
  tool_call type="server_tool_use" call="srvtoolu_1" name="web_search" args={"query":"x"} server
  server_item type="web_search_tool_result" call="srvtoolu_1" server
user tool_continuation
  tool_result type="tool_result" call="toolu_1" error
    text type="text" text="failed"
  tool_result type="tool_result" call="toolu_2" cache=ephemeral
    text type="text" text="seen"
    image type="image" mime="image/png" data="aWs="
    tool_reference type="tool_reference" name="fetch"
  tool_result type="tool_result" call="toolu_3"
  text type="text" text="<system-reminder>r</system-reminder>"`,
		},
		{
			name: "tools",
			send: messageRequest(anthropic.MessageNewParams{
				Messages: one,
				Tools: []anthropic.ToolUnionParam{
					{OfTool: &anthropic.ToolParam{Name: "get", Description: anthropic.String("reads"), InputSchema: input, Strict: anthropic.Bool(true), CacheControl: short}},
					{OfTool: &anthropic.ToolParam{Name: "later", InputSchema: input, DeferLoading: anthropic.Bool(true), Type: anthropic.ToolTypeCustom}},
					{OfBashTool20250124: &anthropic.ToolBash20250124Param{}},
					{OfWebSearchTool20250305: &anthropic.WebSearchTool20250305Param{MaxUses: anthropic.Int(3)}},
				},
				ToolChoice: anthropic.ToolChoiceUnionParam{OfAny: &anthropic.ToolChoiceAnyParam{DisableParallelToolUse: anthropic.Bool(true)}},
			}),
			want: `
params model="demo" max=1000
sampling
choice required serial
tool function name="get" about="reads" schema=` + inputJSON + ` strict=true cache=ephemeral
tool function type="custom" name="later" schema=` + inputJSON + ` deferred
tool hosted type="bash_20250124" name="bash"
tool hosted type="web_search_20250305" name="web_search"
user turn_start
  text type="text" text="?"`,
		},
		{
			name: "named tool",
			send: choice(anthropic.ToolChoiceParamOfTool("get")),
			want: `
params model="demo" max=1000
sampling
choice required allow=["get"]
user turn_start
  text type="text" text="?"`,
		},
		{
			name: "no tools",
			send: choice(anthropic.ToolChoiceUnionParam{OfNone: &anthropic.ToolChoiceNoneParam{}}),
			want: `
params model="demo" max=1000
sampling
choice none
user turn_start
  text type="text" text="?"`,
		},
		{
			name: "thinking",
			send: thinking(anthropic.ThinkingConfigParamOfEnabled(1024)),
			want: `
params model="demo" max=1000
sampling
thinking on budget=1024
user turn_start
  text type="text" text="?"`,
		},
		{
			name: "adaptive thinking",
			send: thinking(anthropic.ThinkingConfigParamUnion{OfAdaptive: &anthropic.ThinkingConfigAdaptiveParam{Display: anthropic.ThinkingConfigAdaptiveDisplayOmitted}}),
			want: `
params model="demo" max=1000
sampling
thinking adaptive
user turn_start
  text type="text" text="?"`,
		},
		{
			name: "no thinking",
			send: thinking(anthropic.ThinkingConfigParamUnion{OfDisabled: &anthropic.ThinkingConfigDisabledParam{}}),
			want: `
params model="demo" max=1000
sampling
thinking off
user turn_start
  text type="text" text="?"`,
		},
		{
			name: "string content",
			send: messageRequest(anthropic.MessageNewParams{Messages: []anthropic.MessageParam{
				param.Override[anthropic.MessageParam](json.RawMessage(`{"role":"user","content":"?"}`)),
			}}),
			want: `
params model="demo" max=1000
sampling
user turn_start
  text text="?"`,
		},
	})
}

// TestCountTokensRequests sees the small cousin of a messages request.
func TestCountTokensRequests(t *testing.T) {
	checkRequests(t, messagesAPI, "/v1/messages/count_tokens", messages.Decode, []request{{
		name: "count",
		send: func(d *desk) error {
			d.whole([]byte(`{"input_tokens":12}`))
			_, err := d.claude.Messages.CountTokens(context.Background(), anthropic.MessageCountTokensParams{
				Model: model, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("?"))},
				System: anthropic.MessageCountTokensParamsSystemUnion{OfString: anthropic.String("s")},
				Tools:  []anthropic.MessageCountTokensToolUnionParam{anthropic.MessageCountTokensToolParamOfTool(anthropic.ToolInputSchemaParam{}, "get")},
			})
			return err
		},
		want: `
params model="demo"
sampling
tool function name="get"
system
  text text="s"
user turn_start
  text type="text" text="?"`,
	}})
}
