// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	antopt "github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/openai/openai-go/v3"
	oaiopt "github.com/openai/openai-go/v3/option"
	oairesp "github.com/openai/openai-go/v3/responses"
	"github.com/stretchr/testify/require"

	"github.com/weft-go/weft/examples/engine/vllm"
	"github.com/weft-go/weft/examples/gateway/serve"
)

// TestErrors sees what the gateway refuses arrive as the SDKs' typed errors, whether a stream was asked for or not.
func TestErrors(t *testing.T) {
	r := start(t, func(p vllm.Prompt) vllm.Reply {
		if strings.Contains(p.Text, "REFUSE") {
			return vllm.Reply{Fail: vllm.Failure{Mode: vllm.Refuse}}
		}
		return vllm.Reply{Text: "fine"}
	}, func(o *serve.Options) { o.MaxModelLen, o.MaxBody = 600, 30000 })

	const invalid = "invalid_request_error"
	long := strings.Repeat("one two three ", 500)
	for _, test := range []struct {
		name, model, text string
		set               string // field that is set in the body
		to                any
		body              string // sent instead

		status                 int
		typ, code, param       string // OpenAI
		claudeStatus           int    // 0 means the same
		claudeTyp              string
		message, claudeMessage string // part of it; the latter "" means the same
	}{
		{name: "unknown model", model: "nobody/gpt-7", status: 404, typ: invalid, code: "model_not_found", param: "model", claudeTyp: "not_found_error", message: "`nobody/gpt-7` does not exist"},
		{name: "wrong type", set: "temperature", to: "hot", status: 400, typ: invalid, param: "temperature", claudeTyp: invalid, message: "temperature"},
		{name: "no JSON", body: `{"model":`, status: 400, typ: invalid, code: "invalid_json", claudeTyp: invalid, message: "cannot be read"},
		{name: "negative limit", set: "max_tokens", to: -1, status: 400, typ: invalid, param: "max_tokens", claudeTyp: invalid, message: "at least 1"},
		{
			name: "too long", text: long, status: 400, typ: invalid, code: "context_length_exceeded", param: "messages", claudeTyp: invalid,
			message: "maximum context length is 600 tokens", claudeMessage: "prompt is too long: ",
		},
		{name: "body too large", text: long + long + long + long + long, status: 413, typ: invalid, code: "request_too_large", claudeTyp: "request_too_large", message: "30000"},
		{name: "engine", text: "REFUSE", status: 502, typ: "server_error", claudeStatus: 500, claudeTyp: "api_error", message: "the engine failed"},
	} {
		name, text := test.model, test.text
		if name == "" {
			name = slashed
		}
		if text == "" {
			text = "go"
		}
		t.Run(test.name, func(t *testing.T) {
			var oai []oaiopt.RequestOption
			var ant []antopt.RequestOption
			setFor := func(key string) {
				if test.set == "max_tokens" && key == "responses" {
					oai = append(oai, oaiopt.WithJSONSet("max_output_tokens", test.to))
				} else if test.set != "" {
					oai = append(oai, oaiopt.WithJSONSet(test.set, test.to))
				}
			}
			if test.set != "" {
				ant = append(ant, antopt.WithJSONSet(test.set, test.to))
			}
			if test.body != "" {
				oai = append(oai, oaiopt.WithRequestBody("application/json", []byte(test.body)))
				ant = append(ant, antopt.WithRequestBody("application/json", []byte(test.body)))
			}
			cp := openai.ChatCompletionNewParams{Model: name, Messages: chatMessages{openai.UserMessage(text)}}
			rp := oairesp.ResponseNewParams{Model: name, Input: oairesp.ResponseNewParamsInputUnion{OfString: openai.String(text)}}
			mp := anthropic.MessageNewParams{
				Model: anthropic.Model(name), MaxTokens: 100, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(text))},
			}
			ctx := context.Background()
			keep := len(oai)
			setFor("chat")
			_, err := r.openai.Chat.Completions.New(ctx, cp, oai...)
			s := r.openai.Chat.Completions.NewStreaming(ctx, cp, oai...)
			require.False(t, s.Next())
			errs := []error{err, s.Err()}
			params := []string{test.param, test.param}
			oai = oai[:keep]
			setFor("responses")
			_, err = r.openai.Responses.New(ctx, rp, oai...)
			rs := r.openai.Responses.NewStreaming(ctx, rp, oai...)
			require.False(t, rs.Next())
			param := test.param // the responses API has its own names
			switch param {
			case "messages":
				param = "input"
			case "max_tokens":
				param = "max_output_tokens"
			}
			params = append(params, param, param)
			for i, err := range append(errs, err, rs.Err()) {
				e, ok := errors.AsType[*openai.Error](err)
				require.True(t, ok, "%T %v", err, err)
				require.Equal(t, test.status, e.StatusCode)
				require.Equal(t, test.typ, e.Type)
				require.Equal(t, test.code, e.Code)
				if test.body == "" { // the SDK meddles with the body
					require.Equal(t, params[i], e.Param)
				}
				require.Contains(t, e.Message, test.message)
			}

			_, err = r.claude.Messages.New(ctx, mp, ant...)
			ms := r.claude.Messages.NewStreaming(ctx, mp, ant...)
			require.False(t, ms.Next())
			errs = []error{err, ms.Err()}
			if test.set == "" && test.text != "REFUSE" && test.name != "too long" {
				_, err = r.claude.Messages.CountTokens(ctx, anthropic.MessageCountTokensParams{Model: mp.Model, Messages: mp.Messages}, ant...)
				errs = append(errs, err)
			}
			for _, err := range errs {
				e, ok := errors.AsType[*anthropic.Error](err)
				require.True(t, ok, "%T %v", err, err)
				status := test.claudeStatus
				if status == 0 {
					status = test.status
				}
				require.Equal(t, status, e.StatusCode)
				require.EqualValues(t, test.claudeTyp, e.Type())
				require.NotEmpty(t, e.RequestID)
				var body struct{ Error struct{ Message string } }
				require.NoError(t, json.Unmarshal([]byte(e.RawJSON()), &body))
				message := test.claudeMessage
				if message == "" {
					message = test.message
				}
				require.Contains(t, body.Error.Message, message)
			}
		})
	}

	t.Run("unknown model, asked for", func(t *testing.T) {
		_, err := r.openai.Models.Get(context.Background(), "a/b")
		e, ok := errors.AsType[*openai.Error](err)
		require.True(t, ok)
		require.Equal(t, []string{"404", "model_not_found"}, []string{fmt.Sprint(e.StatusCode), e.Code})
		_, err = r.claude.Models.Get(context.Background(), "a/b", anthropic.ModelGetParams{})
		a, ok := errors.AsType[*anthropic.Error](err)
		require.True(t, ok)
		require.EqualValues(t, "not_found_error", a.Type())
	})
	t.Run("previous response", func(t *testing.T) {
		_, err := r.openai.Responses.New(context.Background(), oairesp.ResponseNewParams{
			Model: slashed, Input: oairesp.ResponseNewParamsInputUnion{OfString: openai.String("go")}, PreviousResponseID: openai.String("resp_1"),
		})
		e, ok := errors.AsType[*openai.Error](err)
		require.True(t, ok)
		require.Equal(t, "previous_response_not_found", e.Code)
	})
	t.Run("embeddings of an engine without them", func(t *testing.T) {
		_, err := r.openai.Embeddings.New(context.Background(), openai.EmbeddingNewParams{
			Model: slashed, Input: openai.EmbeddingNewParamsInputUnion{OfString: openai.String("x")},
		})
		e, ok := errors.AsType[*openai.Error](err)
		require.True(t, ok)
		require.Equal(t, 400, e.StatusCode)
		require.Contains(t, e.Message, "embeddings")
	})
	t.Run("not offered", func(t *testing.T) {
		_, err := r.openai.Files.Get(context.Background(), "file-1")
		e, ok := errors.AsType[*openai.Error](err)
		require.True(t, ok)
		require.Equal(t, 404, e.StatusCode)
		_, err = r.claude.Messages.Batches.Get(context.Background(), "b", anthropic.MessageBatchGetParams{})
		a, ok := errors.AsType[*anthropic.Error](err)
		require.True(t, ok)
		require.EqualValues(t, "not_found_error", a.Type())
	})
}

// TestEngineBreaks makes the engine fail in the middle of a response: the clients get an error and everything before
// it.
func TestEngineBreaks(t *testing.T) {
	for _, mode := range []vllm.FailureMode{vllm.Cut, vllm.ErrorLine} {
		r := start(t, func(vllm.Prompt) vllm.Reply {
			return vllm.Reply{Text: lines[0], Fail: vllm.Failure{Mode: mode, AfterTokens: 12}}
		}, nil)
		ctx := context.Background()
		c := newChatTalker()
		h, _, err := accumulateChat(t, r.openai.Chat.Completions.NewStreaming(ctx, c.p))
		require.Contains(t, message(t, err), "the engine failed")
		require.NotEmpty(t, h.Choices[0].Pieces, "what came before it")
		_, err = r.openai.Chat.Completions.New(ctx, c.p)
		e, ok := errors.AsType[*openai.Error](err)
		require.True(t, ok)
		require.Equal(t, 502, e.StatusCode)

		p := newResponseTalker().p
		_, last, err := accumulateResponse(t, r.openai.Responses.NewStreaming(ctx, p))
		require.Contains(t, message(t, err), "the engine failed")
		require.EqualValues(t, "server_error", last.Error.Code)
		_, err = r.openai.Responses.New(ctx, p)
		e, ok = errors.AsType[*openai.Error](err)
		require.True(t, ok)
		require.Equal(t, 502, e.StatusCode)

		m := newMessageTalker().p
		_, _, err = accumulateMessage(t, r.claude.Messages.NewStreaming(ctx, m))
		require.Contains(t, message(t, err), "the engine failed")
		_, err = r.claude.Messages.New(ctx, m)
		a, ok := errors.AsType[*anthropic.Error](err)
		require.True(t, ok)
		require.EqualValues(t, "api_error", a.Type())
	}
}
