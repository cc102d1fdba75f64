// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"context"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	oairesp "github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"github.com/weft-go/weft/protocols/responses"
)

func responseRequest(p oairesp.ResponseNewParams, opts ...option.RequestOption) func(d *desk) error {
	return func(d *desk) error {
		_, err := d.openai.Responses.New(context.Background(), p, opts...)
		return err
	}
}

// TestResponsesRequests sees what the OpenAI SDK sends to the responses API read as it was meant.
func TestResponsesRequests(t *testing.T) {
	items := func(list ...oairesp.ResponseInputItemUnionParam) oairesp.ResponseNewParamsInputUnion {
		return oairesp.ResponseNewParamsInputUnion{OfInputItemList: list}
	}
	one := oairesp.ResponseNewParamsInputUnion{OfString: openai.String("?")}
	choice := func(c oairesp.ResponseNewParamsToolChoiceUnion) func(d *desk) error {
		return responseRequest(oairesp.ResponseNewParams{Model: model, Input: one, ToolChoice: c})
	}
	checkRequests(t, responsesAPI, "/v1/responses", responses.Decode, []request{
		{
			name: "plain",
			send: responseRequest(oairesp.ResponseNewParams{Model: model, Input: one}),
			want: `
params model="demo"
sampling
user turn_start
  text text="?"`,
		},
		{
			name: "stream",
			send: func(d *desk) error {
				d.stream(responsesAPI.encode(setup{}, example(), false))
				s := d.openai.Responses.NewStreaming(context.Background(), responseParams())
				defer s.Close()
				for s.Next() {
				}
				return s.Err()
			},
			want: `
params model="demo" stream
sampling
user turn_start
  text text="?"`,
		},
		{
			name: "all scalars",
			send: responseRequest(oairesp.ResponseNewParams{
				Model: "org/demo", Input: one, Instructions: openai.String("Be <brief>."), Background: openai.Bool(false), MaxOutputTokens: openai.Int(77), MaxToolCalls: openai.Int(3),
				PromptCacheKey: openai.String("key"), SafetyIdentifier: openai.String("safe"), Store: openai.Bool(false), Temperature: openai.Float(1),
				TopLogprobs: openai.Int(2), TopP: openai.Float(0.95), User: openai.String("u"),
				ContextManagement: []oairesp.ResponseNewParamsContextManagement{{Type: "compaction", CompactThreshold: openai.Int(1000)}},
				Include:           []oairesp.ResponseIncludable{oairesp.ResponseIncludableReasoningEncryptedContent},
				Metadata:          shared.Metadata{"k": "v"}, PromptCacheRetention: "24h", ServiceTier: oairesp.ResponseNewParamsServiceTierPriority,
				Truncation: oairesp.ResponseNewParamsTruncationAuto, PromptCacheOptions: oairesp.ResponseNewParamsPromptCacheOptions{Mode: "explicit", Ttl: "30m"},
				Reasoning: shared.ReasoningParam{Effort: shared.ReasoningEffortHigh, Summary: shared.ReasoningSummaryDetailed, Context: "all_turns", Mode: "standard"},
				Text:      oairesp.ResponseTextConfigParam{Verbosity: oairesp.ResponseTextConfigVerbosityHigh},
			}),
			want: `
params model="org/demo" max=77 verbosity="high" user="u" key="key" tier="priority"
sampling temperature=1 top_p=0.95 top=2
thinking effort="high" summary="detailed"
system
  text text="Be <brief>."
user turn_start
  text text="?"`,
		},
		{
			name: "extensions of engines",
			send: responseRequest(oairesp.ResponseNewParams{Model: model, Input: one},
				option.WithJSONSet("chat_template_kwargs", object{"enable_thinking": false}), option.WithJSONSet("client_metadata", object{"x": "y"})),
			want: `
params model="demo"
sampling
user turn_start
  text text="?"`,
		},
		{
			name: "previous response",
			send: responseRequest(oairesp.ResponseNewParams{
				Model: model, Input: items(oairesp.ResponseInputItemParamOfItemReference("msg_1")), PreviousResponseID: openai.String("resp_1"),
				Conversation: oairesp.ResponseNewParamsConversationUnion{OfConversationObject: &oairesp.ResponseConversationParam{ID: "conv_1"}},
			}),
			want: `
params model="demo"
sampling
unknown id="msg_1"
  unknown id="msg_1"`,
		},
		{
			name: "messages",
			send: responseRequest(oairesp.ResponseNewParams{Model: model, Input: items(
				oairesp.ResponseInputItemParamOfMessage("s", oairesp.EasyInputMessageRoleSystem),
				oairesp.ResponseInputItemParamOfMessage("d", oairesp.EasyInputMessageRoleDeveloper),
				oairesp.ResponseInputItemParamOfMessage(oairesp.ResponseInputMessageContentListParam{
					{OfInputText: &oairesp.ResponseInputTextParam{Text: "look 😀", PromptCacheBreakpoint: oairesp.NewResponseInputTextPromptCacheBreakpointParam()}},
					{OfInputImage: &oairesp.ResponseInputImageParam{ImageURL: openai.String(pixel), Detail: oairesp.ResponseInputImageDetailLow}},
					{OfInputImage: &oairesp.ResponseInputImageParam{FileID: openai.String("file-1"), Detail: oairesp.ResponseInputImageDetailAuto}},
					{OfInputFile: &oairesp.ResponseInputFileParam{FileURL: openai.String("https://x/a.pdf")}},
					{OfInputFile: &oairesp.ResponseInputFileParam{FileData: openai.String("data:application/pdf;base64,JVBERg=="), Filename: openai.String("a.pdf")}},
				}, oairesp.EasyInputMessageRoleUser),
				oairesp.ResponseInputItemParamOfMessage("a", oairesp.EasyInputMessageRoleAssistant),
				oairesp.ResponseInputItemParamOfInputMessage(oairesp.ResponseInputMessageContentListParam{oairesp.ResponseInputContentParamOfInputText("again")}, "user"),
			)}),
			want: `
params model="demo"
sampling
system
  text text="s"
developer
  text text="d"
user turn_start
  text type="input_text" text="look 😀" cache=explicit
  image type="input_image" mime="image/png" data="aWs=" detail="low"
  image type="input_image" file="file-1" detail="auto"
  file type="input_file" url="https://x/a.pdf"
  file type="input_file" mime="application/pdf" data="JVBERg==" called="a.pdf"
assistant
  text text="a"
user turn_start
  text type="input_text" text="again"`,
		},
		{
			name: "conversation with tools",
			send: responseRequest(oairesp.ResponseNewParams{Model: model, Input: items(
				oairesp.ResponseInputItemParamOfMessage("read", oairesp.EasyInputMessageRoleUser),
				oairesp.ResponseInputItemUnionParam{OfReasoning: &oairesp.ResponseReasoningItemParam{
					ID: "rs_1", Summary: []oairesp.ResponseReasoningItemSummaryParam{{Text: "I"}, {Text: "think"}}, EncryptedContent: openai.String("b3BhcXVl"),
				}},
				oairesp.ResponseInputItemUnionParam{OfReasoning: &oairesp.ResponseReasoningItemParam{
					ID: "rs_2", Summary: []oairesp.ResponseReasoningItemSummaryParam{}, Content: []oairesp.ResponseReasoningItemContentParam{{Text: "raw"}},
				}},
				oairesp.ResponseInputItemParamOfOutputMessage([]oairesp.ResponseOutputMessageContentUnionParam{
					{OfOutputText: &oairesp.ResponseOutputTextParam{Text: "Looking.", Annotations: []oairesp.ResponseOutputTextAnnotationUnionParam{}}},
					{OfRefusal: &oairesp.ResponseOutputRefusalParam{Refusal: "no"}},
				}, "msg_1", oairesp.ResponseOutputMessageStatusCompleted),
				oairesp.ResponseInputItemUnionParam{OfFunctionCall: &oairesp.ResponseFunctionToolCallParam{
					ID: openai.String("fc_1"), CallID: "functions.get:0", Name: "get", Namespace: openai.String("mcp"), Arguments: `{ "path": "a<b>.go", "n":1.50}`,
				}},
				oairesp.ResponseInputItemParamOfCustomToolCall("call_2", patch, "apply_patch"),
				oairesp.ResponseInputItemUnionParam{OfCustomToolCallOutput: &oairesp.ResponseCustomToolCallOutputParam{
					CallID: "call_2", Output: oairesp.ResponseCustomToolCallOutputOutputUnionParam{OfString: openai.String("done")},
				}},
				oairesp.ResponseInputItemUnionParam{OfFunctionCallOutput: &oairesp.ResponseInputItemFunctionCallOutputParam{
					CallID: openai.String("functions.get:0"), Output: oairesp.ResponseInputItemFunctionCallOutputOutputUnionParam{OfResponseFunctionCallOutputItemArray: oairesp.ResponseFunctionCallOutputItemListParam{
						{OfInputText: &oairesp.ResponseInputTextContentParam{Text: "seen"}},
						{OfInputImage: &oairesp.ResponseInputImageContentParam{ImageURL: openai.String(pixel)}},
					}},
				}},
				oairesp.ResponseInputItemParamOfCompaction("Y29tcGFjdA=="),
				oairesp.ResponseInputItemParamOfMessage("go on", oairesp.EasyInputMessageRoleUser),
			)}),
			want: `
params model="demo"
sampling
user turn_start
  text text="read"
assistant
  reasoning type="reasoning" id="rs_1" text="I\n\nthink" encrypted="b3BhcXVl" summary
  reasoning type="reasoning" id="rs_2" text="raw"
  text type="output_text" text="Looking."
  refusal type="refusal" text="no"
  tool_call type="function_call" id="fc_1" call="functions.get:0" space="mcp" name="get" args={ "path": "a<b>.go", "n":1.50}
  tool_call type="custom_tool_call" call="call_2" name="apply_patch" args=` + patch + ` custom
tool tool_continuation
  tool_result type="custom_tool_call_output" call="call_2" custom
    text text="done"
  tool_result type="function_call_output" call="functions.get:0"
    text type="input_text" text="seen"
    image type="input_image" mime="image/png" data="aWs="
assistant
  compaction type="compaction" encrypted="Y29tcGFjdA=="
user turn_start
  text text="go on"`,
		},
		{
			name: "items of hosted tools",
			send: responseRequest(oairesp.ResponseNewParams{Model: model, Input: items(
				oairesp.ResponseInputItemParamOfMessage("search", oairesp.EasyInputMessageRoleUser),
				oairesp.ResponseInputItemParamOfFileSearchCall("fs_1", []string{"q"}, oairesp.ResponseFileSearchToolCallStatusCompleted),
				oairesp.ResponseInputItemParamOfLocalShellCallOutput("ls_1", "{}"),
			)}),
			want: `
params model="demo"
sampling
user turn_start
  text text="search"
assistant
  server_item type="file_search_call" id="fs_1" server
tool tool_continuation
  server_item type="local_shell_call_output" id="ls_1" server`,
		},
		{
			name: "tools",
			send: responseRequest(oairesp.ResponseNewParams{
				Model: model, Input: one, ParallelToolCalls: openai.Bool(false),
				Tools: []oairesp.ToolUnionParam{
					{OfFunction: &oairesp.FunctionToolParam{Name: "get", Description: openai.String("reads"), Parameters: schema, Strict: openai.Bool(true), DeferLoading: openai.Bool(true)}},
					{OfCustom: &oairesp.CustomToolParam{Name: "apply_patch", Description: openai.String("edits"), Format: shared.CustomToolInputFormatUnionParam{
						OfGrammar: &shared.CustomToolInputFormatGrammarParam{Definition: "start: /.+/", Syntax: "lark"},
					}}},
					oairesp.ToolParamOfCustom("free"),
					oairesp.ToolParamOfNamespace("about mcp", "mcp", []oairesp.NamespaceToolToolUnionParam{
						{OfFunction: &oairesp.NamespaceToolToolFunctionParam{Name: "get", Parameters: schema}}, {OfCustom: &oairesp.CustomToolParam{Name: "put"}},
					}),
					oairesp.ToolParamOfWebSearch(oairesp.WebSearchToolTypeWebSearch),
					oairesp.ToolParamOfMcp("label"),
				},
				ToolChoice: oairesp.ResponseNewParamsToolChoiceUnion{OfToolChoiceMode: openai.Opt(oairesp.ToolChoiceOptionsRequired)},
			}),
			want: `
params model="demo"
sampling
choice required serial
tool function type="function" name="get" about="reads" schema=` + schemaJSON + ` strict=true deferred
tool custom type="custom" name="apply_patch" about="edits" format={"definition":"start: /.+/","syntax":"lark","type":"grammar"}
tool custom type="custom" name="free"
tool function type="function" space="mcp" name="get" schema=` + schemaJSON + `
tool custom type="custom" space="mcp" name="put"
tool hosted type="web_search"
tool hosted type="mcp"
user turn_start
  text text="?"`,
		},
		{
			name: "named tool",
			send: choice(oairesp.ResponseNewParamsToolChoiceUnion{OfFunctionTool: &oairesp.ToolChoiceFunctionParam{Name: "get"}}),
			want: `
params model="demo"
sampling
choice required allow=["get"]
user turn_start
  text text="?"`,
		},
		{
			name: "named custom tool",
			send: choice(oairesp.ResponseNewParamsToolChoiceUnion{OfCustomTool: &oairesp.ToolChoiceCustomParam{Name: "apply_patch"}}),
			want: `
params model="demo"
sampling
choice required allow=["apply_patch"]
user turn_start
  text text="?"`,
		},
		{
			name: "allowed tools",
			send: choice(oairesp.ResponseNewParamsToolChoiceUnion{OfAllowedTools: &oairesp.ToolChoiceAllowedParam{
				Mode: oairesp.ToolChoiceAllowedModeAuto, Tools: []map[string]any{{"type": "function", "name": "get"}, {"type": "custom", "name": "apply_patch"}},
			}}),
			want: `
params model="demo"
sampling
choice auto allow=["get" "apply_patch"]
user turn_start
  text text="?"`,
		},
		{
			name: "schema format",
			send: responseRequest(oairesp.ResponseNewParams{Model: model, Input: one, Text: oairesp.ResponseTextConfigParam{Format: oairesp.ResponseFormatTextConfigUnionParam{
				OfJSONSchema: &oairesp.ResponseFormatTextJSONSchemaConfigParam{Name: "answer", Description: openai.String("d"), Strict: openai.Bool(false), Schema: schema},
			}}}),
			want: `
params model="demo"
sampling
format json_schema name="answer" schema=` + schemaJSON + ` strict=false
user turn_start
  text text="?"`,
		},
		{
			name: "JSON format",
			send: responseRequest(oairesp.ResponseNewParams{Model: model, Input: one, Text: oairesp.ResponseTextConfigParam{Format: oairesp.ResponseFormatTextConfigUnionParam{
				OfJSONObject: &shared.ResponseFormatJSONObjectParam{},
			}}}),
			want: `
params model="demo"
sampling
format json_object
user turn_start
  text text="?"`,
		},
	})
}
