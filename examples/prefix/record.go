// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/weft-go/weft/examples/internal/cli"
	"github.com/weft-go/weft/protocols/block"
	"github.com/weft-go/weft/protocols/wire"
)

// A visit is called for each request, with an error if it is invalid. An error that it returns ends the reading.
type visit func(id json.RawMessage, api string, body []byte, err error) error

// each calls f for each request in files, or in stdin without files: requests themselves, on one line or many, and
// records.
func each(stdin io.Reader, files []string, f visit) error {
	return cli.EachFile(stdin, files, func(name string, in io.Reader) error { return values(cmp.Or(name, "stdin"), in, f) })
}

// values calls f for each JSON value in a file. It cannot continue after invalid JSON.
func values(name string, in io.Reader, f visit) error {
	dec := json.NewDecoder(in)
	for n := 1; ; n++ {
		var raw json.RawMessage
		err := dec.Decode(&raw)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err == nil:
			err = record(name, raw, f)
		default:
			id, _ := json.Marshal(name)
			return f(id, "", nil, fmt.Errorf("request %d: %w; rest of %s skipped", n, err, name))
		}
		if err != nil {
			return err
		}
	}
}

// paths maps the paths of the APIs to their names.
var paths = map[string]string{"/v1/chat/completions": "chat", "/v1/responses": "responses", "/v1/messages": "messages"}

// guess returns the API of a body by fields that only one API has. Decoders of the other APIs would lose a part of the
// conversation.
func guess(body []byte) string {
	var b struct {
		Input, Instructions, System json.RawMessage
		Messages                    []struct{ Content json.RawMessage }
	}
	if json.Unmarshal(body, &b) != nil {
		return "chat" // its decoder reports the error
	}
	switch {
	case b.Input != nil || b.Instructions != nil:
		return "responses"
	case b.System != nil:
		return "messages"
	}
	for _, m := range b.Messages {
		var parts []struct{ Type string }
		_ = json.Unmarshal(m.Content, &parts) // fails for a string
		for _, p := range parts {
			switch p.Type {
			case "tool_use", "tool_result", "thinking", "redacted_thinking":
				return "messages"
			}
		}
	}
	return "chat"
}

func record(name string, raw json.RawMessage, f visit) error {
	var rec struct {
		ID   json.RawMessage
		API  string
		Path string // of a recording
		Body json.RawMessage
	}
	if json.Unmarshal(raw, &rec) != nil || rec.Body == nil { // a request itself
		rec.ID, rec.API, rec.Path, rec.Body = nil, "", "", raw
	}
	if rec.API == "" {
		rec.API = paths[rec.Path]
	}
	if rec.ID == nil {
		rec.ID, _ = json.Marshal(name)
	}
	var text string
	if rec.Body[0] != '"' || json.Unmarshal(rec.Body, &text) != nil {
		text = string(rec.Body)
	}
	return f(rec.ID, rec.API, []byte(text), nil)
}

// decode reads the body of a request.
func decode(api string, body []byte) (*block.Request, error) {
	from, err := wire.Lookup(api)
	if err != nil || from == wire.Completions {
		return nil, fmt.Errorf("unknown API %q: want chat, responses or messages", api)
	}
	return from.Decode(body, nil)
}
