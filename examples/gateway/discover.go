// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weft-go/weft/examples/engine/upstream"
	"github.com/weft-go/weft/examples/gateway/serve"
	"github.com/weft-go/weft/examples/internal/cli"
	"github.com/weft-go/weft/parsers"
	"github.com/weft-go/weft/protocols/apierr"
	"github.com/weft-go/weft/protocols/event"
	"github.com/weft-go/weft/protocols/wire"
	"github.com/weft-go/weft/tokenizers"
	"github.com/weft-go/weft/tokenizers/prompt"
)

// This file asks the engines what they are, fills in the settings that are not configured, and refuses a configuration
// that contradicts an engine:
//
//	discover       the kinds, the model, its directory, the window, the block size, the addresses of events
//	checkTokens    the tokenizer
//	checkTemplate  the chat template
//	checkAgain     all of that, of an engine that may have been restarted

// probed are the engines that responded.
type probed []*upstream.Engine

// discover asks the engines of c and completes c. An engine without a configured kind must answer; of the others, one that
// does not answer is only logged, because it may start later, unless p is strict. The error has what is wrong with each engine.
func (p *program) discover(ctx context.Context, c *config) (probed, error) {
	var found probed
	var faults []error
	given := *c
	for i := range c.Engines {
		e := &c.Engines[i]
		if err := e.valid(); err != nil {
			faults = append(faults, err)
			continue
		}
		if e.inProcess() {
			continue
		}
		if e.managed() {
			c.Model = cmp.Or(c.Model, e.Model)
		}
		engine, err := e.ask(ctx, c.Model, true)
		e.Asked = !e.managed()
		switch {
		case errors.Is(err, errNoKey):
			faults = append(faults, err)
			continue
		case err != nil && e.Kind == "":
			faults = append(faults, fmt.Errorf("cannot ask the engine what it is: %w\nStart it first, or describe it with -engine vllm=%s, -model and -model-dir", err, e.URL))
			continue
		case err != nil && p.strict && !(e.managed() && isNotFound(err)): // endpoints need not list their models
			faults = append(faults, err)
			continue
		case err != nil:
			p.log.Warn("the engine does not tell what it serves", "engine", e.URL, "err", err)
			e.Silent = true
			continue
		}
		if err := e.complete(engine); err != nil {
			faults = append(faults, err)
			continue
		}
		if e.managed() {
			p.completeManaged(c, e, engine, &given)
			continue
		}
		if err := c.complete(engine, &given); err != nil {
			faults = append(faults, err)
			continue
		}
		if found := e.adapters(engine, c.Model); len(found) > 0 {
			e.Adapters = found
			p.log.Info("adapters found", "url", engine.URL, "adapters", strings.Join(found, ", "))
		}
		found = append(found, engine)
		p.log.Info("engine found", "url", engine.URL, "kind", e.Kind, "version", engine.Version, "model", c.Model,
			"window", engine.Models[0].Window, "block_size", engine.BlockSize, "blocks", e.CacheBlocks, "events", e.Events)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	if c.Model == "" {
		return nil, cli.Usagef("no model: set -model NAME")
	}
	return found, nil
}

// valid checks the kind and the URL. What it refuses may be a password, and is not quoted.
func (e *engineConfig) valid() error {
	if e.Kind != "" && e.kind() == nil {
		return cli.OneOf("engine kind", e.Kind, kinds()...)
	}
	u, err := url.Parse(e.URL)
	switch {
	case e.inProcess():
		return nil
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return cli.Usagef("engine of the kind %q: its URL must begin with http:// or https:// and a host", e.Kind)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return cli.Usagef("engine %s: a URL with a user, a query or a fragment; its key is read from the variable that key_env names", u.Host)
	}
	return nil
}

// inProcess reports whether an engine is started in this process.
func (e *engineConfig) inProcess() bool { return e.Kind == "embedded" && e.URL == "local" }

// kind returns the kind of an engine, or nil if it is not configured or does not exist.
func (e *engineConfig) kind() upstream.Kind {
	if e.Found != nil {
		return e.Found
	}
	k, _ := upstream.Lookup(e.Kind)
	return k
}

// isNotFound reports whether an engine has refused a request because it has no such endpoint.
func isNotFound(err error) bool {
	refused, ok := errors.AsType[*apierr.Error](err)
	return ok && refused.Why == event.NotFound
}

// ask asks an engine what it is. One that loads models on demand loads the given one, or its first one, if load is set.
func (e *engineConfig) ask(ctx context.Context, model string, load bool) (*upstream.Engine, error) {
	key, err := e.key()
	if err != nil {
		return nil, err
	}
	if m, ok := e.kind().(upstream.Managed); ok {
		return m.Ask(ctx, e.URL, key)
	}
	engine, err := upstream.Ask(ctx, e.URL, key)
	if err == nil && load {
		err = engine.Load(ctx, cmp.Or(model, engine.Models[0].ID))
	}
	return engine, err
}

var errNoKey = errors.New("the environment variable with the key is not set")

// key returns the key of an engine: the one in the variable that is configured, or in the variable of the kind, which is not for
// all hosts. For an engine without a kind it is the first one that is set.
func (e *engineConfig) key() (string, error) {
	if e.KeyEnv != "" {
		key := os.Getenv(e.KeyEnv)
		if key == "" {
			return "", fmt.Errorf("engine %s: key_env %s: %w", e.URL, e.KeyEnv, errNoKey)
		}
		return key, nil
	}
	host := ""
	if u, err := url.Parse(e.URL); err == nil {
		host = u.Hostname()
	}
	for _, k := range upstream.Kinds() {
		t := k.Traits()
		if t.KeyEnv != "" && (e.Kind == "" || e.Kind == k.String()) && (t.Host == "" || t.Host == host) {
			if key := os.Getenv(t.KeyEnv); key != "" {
				return key, nil
			}
		}
	}
	return "", nil
}

// complete fills in the kind of an engine, where it publishes events, and how many requests it takes.
func (e *engineConfig) complete(engine *upstream.Engine) error {
	switch found := engine.Kind; {
	case found == nil && e.Kind == "":
		return fmt.Errorf("engine %s is of an unknown kind (%q): if it has vLLM's /v1/completions, write -engine vllm=%s", e.URL, engine.Owner, e.URL)
	case found == nil:
	case e.Kind == "":
		if len(engine.Events) == 1 && engine.Events[0].Listens && e.Events == "" {
			e.Events, e.Replay = engine.Events[0].Events, engine.Events[0].Replay
		}
		e.Kind = found.String()
	case found == (upstream.LlamaCPP{}) && e.Kind != "llamacpp":
		return fmt.Errorf("engine %s is llama.cpp, not %s: write -engine llamacpp=%s", e.URL, e.Kind, e.URL)
	}
	// An upstream.VLLMTokens does not read the hints of these features.
	if k := engine.Kind; k != nil && k != e.kind() && k.String() == e.Kind && !strings.Contains(e.Features, "thinking budget") && !strings.Contains(e.Features, "session field") {
		e.Found = k
	}
	e.MaxRequests, e.CacheBlocks = cmp.Or(e.MaxRequests, engine.Slots), cmp.Or(e.CacheBlocks, engine.Blocks)
	return nil
}

// completeManaged fills in the settings that a managed endpoint knows. It may serve more models than it lists.
func (p *program) completeManaged(c *config, e *engineConfig, engine *upstream.Engine, given *config) {
	if c.Model == "" && len(engine.Models) == 1 {
		c.Model = engine.Models[0].ID
	}
	name := cmp.Or(e.Model, c.Model)
	i := slices.IndexFunc(engine.Models, func(m upstream.Model) bool { return m.ID == name })
	if i < 0 {
		p.log.Warn("the endpoint does not list the model", "url", engine.URL, "model", name, "models", len(engine.Models))
		return
	}
	if window := engine.Models[i].Window; window > 0 && given.MaxModelLen == 0 { // the smallest of all endpoints
		c.MaxModelLen = min(cmp.Or(c.MaxModelLen, window), window)
	}
	p.log.Info("endpoint found", "url", engine.URL, "kind", e.Kind, "model", name, "window", engine.Models[i].Window)
}

// adapters returns the adapters of a model that are configured or that the engine, a vLLM, reports.
func (e *engineConfig) adapters(engine *upstream.Engine, model string) []string {
	names := e.Adapters
	for _, m := range engine.Models {
		if e.Kind == "vllm" && m.Parent == model && !slices.Contains(names, m.ID) {
			names = append(slices.Clip(names), m.ID)
		}
	}
	return names
}

// complete fills in the settings that the engine knows, and compares those that were given with it.
func (c *config) complete(engine *upstream.Engine, given *config) error {
	if c.Model == "" {
		c.Model = engine.Models[0].ID
	}
	i := slices.IndexFunc(engine.Models, func(m upstream.Model) bool { return m.ID == c.Model })
	if i < 0 {
		var names []string
		for _, m := range engine.Models {
			names = append(names, m.ID)
		}
		return fmt.Errorf("engine %s serves %s, not %s: set -model to a name that it serves, and -alias %s for clients", engine.URL, strings.Join(names, ", "), c.Model, c.Model)
	}
	m := engine.Models[i]
	if m.Parent != "" {
		return fmt.Errorf("%s is an adapter of %s at the engine %s: set -model %s, which also serves its adapters", m.ID, m.Parent, engine.URL, m.Parent)
	}
	switch {
	case m.Window <= 0:
	case given.MaxModelLen == 0: // the smallest of all engines
		c.MaxModelLen = min(cmp.Or(c.MaxModelLen, m.Window), m.Window)
	case given.MaxModelLen > m.Window:
		return fmt.Errorf("the engine %s takes %d tokens of prompt and output, -max-model-len is %d", engine.URL, m.Window, given.MaxModelLen)
	}
	switch {
	case engine.BlockSize <= 0:
	case c.BlockSize == 0:
		c.BlockSize = engine.BlockSize
	case c.BlockSize != engine.BlockSize && given.BlockSize == 0:
		return fmt.Errorf("the cache blocks of the engine %s have %d tokens, the blocks of another engine %d: the size must be the same", engine.URL, engine.BlockSize, c.BlockSize)
	case c.BlockSize != engine.BlockSize:
		return fmt.Errorf("the cache blocks of the engine %s have %d tokens, -block-size is %d", engine.URL, engine.BlockSize, c.BlockSize)
	}
	if c.ModelDir == "" && engine.Kind != (upstream.Embedded{}) {
		dir, err := modelDir(cmp.Or(m.Root, m.ID))
		if err != nil {
			return fmt.Errorf("the engine %s serves %s, of which %w: set -model-dir to the directory with its tokenizer and chat template", engine.URL, m.ID, err)
		}
		c.ModelDir = dir
	}
	return nil
}

// modelDir returns the directory of a model: root itself, or the snapshot of the repository of that name in the cache of
// Hugging Face.
func modelDir(root string) (string, error) {
	if hasTokenizer(root) {
		return root, nil
	}
	cache := os.Getenv("HF_HUB_CACHE")
	if home := os.Getenv("HF_HOME"); cache == "" && home != "" {
		cache = filepath.Join(home, "hub")
	}
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		cache = filepath.Join(home, ".cache", "huggingface", "hub")
	}
	repo := filepath.Join(cache, "models--"+strings.ReplaceAll(root, "/", "--"))
	if commit, err := os.ReadFile(filepath.Join(repo, "refs", "main")); err == nil {
		if dir := filepath.Join(repo, "snapshots", strings.TrimSpace(string(commit))); hasTokenizer(dir) {
			return dir, nil
		}
	}
	return "", fmt.Errorf("neither %s nor %s has a tokenizer", root, repo)
}

// hasTokenizer reports whether a directory has one of the files of a tokenizer.
func hasTokenizer(dir string) bool {
	for _, name := range []string{"tokenizer.json", "tokenizer.model", "tekken.json", "vocab.json", "vocab.txt"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
			return true
		}
	}
	return false
}

// probeText differs between tokenizers: words, numbers, white space, other scripts, and a marker in plain text.
const probeText = "Hello, world!  3.14159 items\n\n\tdef f(x): return x**2  # naïve — 你好 🙂 <|x|>"

// checkTokens compares the tokenizer with the tokenizer of each engine.
func (found probed) checkTokens(ctx context.Context, c *config, tok *tokenizers.Tokenizer, log *slog.Logger) error {
	for _, e := range found {
		ours := tok.AppendEncode(nil, probeText)
		ids, err := e.Tokenize(ctx, c.Model, probeText)
		text := e.Kind != nil && e.Kind.Traits().Text
		if errors.Is(err, errors.ErrUnsupported) {
			if text {
				log.Warn("the engine gets text, and its tokenizer cannot be compared", "engine", e.URL, "err", err)
			}
			continue
		}
		if err != nil {
			return err
		}
		if text { // output follows
			ids = ids[:min(len(ids), len(ours)-1)]
			ours = ours[:len(ours)-1]
		}
		if !slices.Equal(ids, ours) {
			return fmt.Errorf("the tokenizer in %s differs from the tokenizer of the engine %s: a text has the ids %v there and %v here", cmp.Or(c.ModelDir, "mini"), e.URL, clip(ids), clip(ours))
		}
	}
	return nil
}

// checkTemplate compares the chat template with the template of each engine that has an endpoint for it. A difference is only
// logged, because prompts are printed by the gateway's template, which may be a corrected one.
func (found probed) checkTemplate(ctx context.Context, c *config, m *prompt.Model, log *slog.Logger) {
	text, _ := json.Marshal(probeText) // a string
	messages := fmt.Appendf(nil, `[{"role":"user","content":"Hello"},{"role":"assistant","content":"Hi."},{"role":"user","content":%s}]`, text)
	req, err := wire.Chat.Decode(fmt.Appendf(nil, `{"model":"m","messages":%s}`, messages), nil)
	if err != nil {
		panic(err) // it does not depend on the configuration
	}
	p, err := m.Render(req, time.Now())
	if err != nil {
		return // this template does not take the conversation
	}
	tok := m.Tokenizer()
	for _, e := range found {
		ids, theirs, err := e.Render(ctx, c.Model, messages)
		if err != nil {
			continue
		}
		if ids != nil {
			theirs = string(tok.AppendDecode(nil, ids, false))
		}
		ours := p.Text
		if front, ok := strings.CutSuffix(ours, theirs); ok { // llama.cpp adds the token that begins a prompt later
			if _, ok := tok.TokenID(front); ok || front == "" {
				continue
			}
		}
		at := 0
		for at < len(ours) && at < len(theirs) && ours[at] == theirs[at] {
			at++
		}
		excerpt := func(s string) string { return s[max(at-20, 0):min(at+40, len(s))] }
		log.Warn("the engine's chat template differs from the one in the model directory, which the gateway uses", "engine", e.URL, "dir", c.ModelDir,
			"engine_prints", excerpt(theirs), "gateway_prints", excerpt(ours))
	}
}

// omitted returns the markers of the model's family that an engine that returns text omits, because they are special tokens.
func omitted(m *prompt.Model) (list []string) {
	if g, _ := parsers.Default().Lookup(m.Family()); g != nil {
		for _, marker := range g.Markers() {
			if id, ok := m.Tokenizer().TokenID(marker.Text); ok && m.Tokenizer().IsSpecial(id) {
				list = append(list, marker.Text)
			}
		}
	}
	return list
}

// checkAgain returns the function that compares an engine with the configuration, which discover has completed. As at the
// start, an engine need not tell what it is. Of an Ollama, only the names of its models are compared: for the rest, it would load the
// model, or keep it loaded.
func (c *config) checkAgain(e engineConfig, tok *tokenizers.Tokenizer) func(context.Context) error {
	now := *c
	now.BlockSize, now.ModelDir = cmp.Or(now.BlockSize, serve.DefaultBlockSize), cmp.Or(now.ModelDir, "mini")
	return func(ctx context.Context) error {
		loads := e.Kind == "ollama"
		engine, err := e.ask(ctx, now.Model, false)
		if isNotFound(err) {
			return nil
		}
		if err == nil {
			one, all := e, now
			one.Found = nil
			err = cmp.Or(one.complete(engine), all.complete(engine, &now))
			if err == nil && !loads {
				err = probed{engine}.checkTokens(ctx, &now, tok, slog.New(slog.DiscardHandler))
			}
			if err == nil && !loads && e.Found != nil && one.Found != e.Found {
				err = fmt.Errorf("the engine %s no longer has the endpoint %s with the defaults that it had: send SIGHUP, or start it as before", e.URL, e.Found.Traits().Path)
			}
			if err == nil {
				return nil
			}
		} else if !errors.Is(err, upstream.ErrKey) {
			return err
		}
		return fmt.Errorf("%w: %w", serve.ErrContradiction, err)
	}
}

// clip shortens a list for an error.
func clip(ids []uint32) string {
	if len(ids) > 8 {
		return fmt.Sprintf("%d … (%d ids)", ids[:8], len(ids))
	}
	return fmt.Sprint(ids)
}
